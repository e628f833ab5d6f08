"""CybORG as an evaluation engine; tests marked parity need CybORG."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cagepool import make_vec
from cagepool.cyborg import CybORGEnv
from cagepool.evaluate.rollout import Trial, game_seeds
from cagepool.evaluate.statistics import play_and_count
from cagepool.parity.engine import CybORGEngine, TracedCybORGEnv
from cagepool.policy.defenders import scripted_defender
from cagepool.policy.load import load
from cagepool.scenarios import CAGE2, Layout, Scenario
from cagepool.sim import COUNTERS, dtypes, replay
from cagepool.sim.compliance import ComplianceTracker
from cagepool.sim.names import action_index
from tests.evaluate.folders import make_run
from tests.sim.test_compliance import FIXES, RULES, ReferenceCounter

ORDER = "user>op_host>enterprise>op_server>defender"
GAMES, STEPS = 2, 40
SCENARIOS = Path(__file__).parents[1] / "golden" / "scenarios"


def meander() -> CybORGEnv:
    return CybORGEnv(red="RedMeanderAgent", max_steps=STEPS)


@pytest.mark.parity
def test_compliance_is_counted_as_specified_from_a_workers_true_state() -> None:
    trackers = [
        ComplianceTracker(GAMES, ORDER, knowledge=knowledge, definition=definition, alignment=30.0)
        for knowledge, definition in RULES
    ]
    references = [[ReferenceCounter(ORDER, *rule) for _ in range(GAMES)] for rule in RULES]
    rng = np.random.default_rng(3)
    with make_vec(GAMES, env=meander, backend="workers", workers=2, true_state="every") as envs:
        envs.reset(seed=1)
        for _ in range(STEPS):
            played = [str(rng.choice(["Sleep", *FIXES])) for _ in range(GAMES)]
            chosen = np.array([action_index(name) for name in played])
            seen: Any = SimpleNamespace(true_state=envs.true_state)
            for tracker, of_games in zip(trackers, references, strict=True):
                tracker.update(envs.true_state, chosen)
                for game, reference in enumerate(of_games):
                    reference.update(seen, game, played[game])
            envs.step(chosen)
    for tracker, of_games in zip(trackers, references, strict=True):
        expected = [[reference.counts[name] for name in COUNTERS] for reference in of_games]
        assert tracker.counters.tolist() == expected
        assert tracker.counters[:, COUNTERS.index("threat_steps")].all()


@pytest.mark.parity
def test_an_evaluation_in_cyborg_has_compliance() -> None:
    engine = CybORGEngine()
    trial = Trial(episodes=2, max_steps=20, order=ORDER, edition=engine.edition)
    counted = play_and_count(
        scripted_defender("restore-rotation"), trial, "RedMeanderAgent", engine
    )
    found = counted.compliance()
    assert found is not None
    assert found.decisions


class ReplayedGame:
    """An episode of CybORG, replayed natively; implements `Games`."""

    games = 1
    scenarios = (CAGE2,)
    scenario_ids = np.zeros(1, np.int32)
    layout = Layout.of([CAGE2])

    def __init__(self, env: TracedCybORGEnv, seed: int, played: NDArray[np.uint8]) -> None:
        self._seed = seed
        env.reset(seed=seed)
        results = [(*env.step(action), env.true_state()["row"].copy()) for action in played]
        self.rewards = [result[1] for result in results]
        names = {"edition": env.edition, "red_names": [env.red]}
        rows = np.array([result[-1] for result in results])
        trace = {name: rows[name][np.newaxis] for name in rows.dtype.names or ()}
        constants = {name: np.zeros(1, np.int8) for name in ("ep_red", "ep_green")}
        trace |= {**constants, "meta": np.array(json.dumps(names)), "blue_action": played[None]}
        self._rows = replay(trace)
        np.testing.assert_array_equal(self._rows["obs"][0], [result[0] for result in results])
        self.show_step(-1)

    def show_step(self, step: int) -> None:
        """Show the results of a step."""
        observations = self._rows["obs"][:, step] if step >= 0 else np.zeros((1, 52))
        self.observations = observations.astype(np.float32)
        self.moves = np.zeros(1, dtypes.MOVES)
        for name in self._rows.keys() & (dtypes.MOVES.names or ()):  # a trace has no decoy_pick
            self.moves[name] = self._rows[name][:, step]

    def stream_key(self, _game: int) -> int:
        return self._seed


@pytest.mark.parity
@pytest.mark.parametrize("blue", ["policy", "random", "react-restore"])
def test_a_defender_plays_in_cyborg_as_it_would_natively(blue: str, tmp_path: Path) -> None:
    name = str(make_run(tmp_path / "one")) if blue == "policy" else blue
    engine = CybORGEngine()
    trial = Trial(episodes=2, edition=engine.edition, seed=4, max_steps=50)
    counted = play_and_count(load(name), trial, "B_lineAgent", engine)

    env = TracedCybORGEnv(red="B_lineAgent", max_steps=50)
    for game, seed in enumerate(game_seeds(trial, "B_lineAgent").tolist()):
        native: Any = ReplayedGame(env, seed, counted.actions[game])
        defender = load(name)
        defender.begin(native)
        for step, action in enumerate(counted.actions[game]):
            assert defender.act(native.observations)[0] == action
            native.show_step(step)
        assert sum(native.rewards) == pytest.approx(counted.totals[game, 0, -1])
    lost = sum(counted.mean_loss().values())
    assert lost == pytest.approx(-counted.totals[:, 0, -1].mean())


@pytest.mark.parity
def test_games_of_cyborg_do_not_depend_on_how_many_are_played_at_once() -> None:
    engine = CybORGEngine()
    trial = Trial(episodes=5, edition=engine.edition, max_steps=30)
    together = play_and_count(load("random"), trial, "RedMeanderAgent", engine)

    engine.max_games = 3
    in_parts = play_and_count(load("random"), trial, "RedMeanderAgent", engine)

    np.testing.assert_array_equal(in_parts.totals, together.totals)
    np.testing.assert_array_equal(in_parts.actions, together.actions[:3])


@pytest.mark.parity
def test_cyborg_of_another_edition_is_refused() -> None:
    engine = CybORGEngine()
    other = {"2.1": "leaderboard", "leaderboard": "2.1"}[engine.edition]

    with pytest.raises(ValueError, match="edition must be that of the CybORG found"):
        play_and_count(load("sleep"), Trial(episodes=2, edition=other), "b_line", engine)


@pytest.mark.parity
def test_games_of_another_scenario_are_shown_by_the_slots_of_a_layout() -> None:
    small, large = (Scenario.load(SCENARIOS / f"{name}.yaml") for name in ("tiny", "users_plus2"))
    layout = Layout.of([small, large])
    engine = CybORGEngine()
    trial = Trial(
        episodes=2,
        edition=engine.edition,
        max_steps=STEPS,
        scenario=(small,),
        layout=layout,
    )
    with engine.open(trial, "B_lineAgent") as start:
        games = start(game_seeds(trial, "B_lineAgent"))
        games.step(np.full(2, layout.actions.index("Restore User1")))
        assert games.moves["blue_success"].tolist() == [1, 1]
        games.step(
            np.full(2, layout.actions.index("Restore User6"))
        )  # the scenario lacks this host
        assert games.moves["blue_success"].tolist() == [-1, -1]
    assert games.observations.shape == (2, 4 * len(layout.slots))
    assert games.true_state["access"].shape == (2, len(small.hosts))


@pytest.mark.parity
def test_several_networks_and_orders_in_other_networks_are_refused() -> None:
    scenario = Scenario.load(SCENARIOS / "tiny.yaml")
    wrong = {
        "^CybORG plays one scenario per trial, got 2$": Trial(scenario=(scenario, CAGE2)),
        "^order must be absent in CybORG's games of scenarios other than CAGE-2, got tiny$": Trial(
            scenario=(scenario,), order=ORDER
        ),
    }
    for sentence, trial in wrong.items():
        with pytest.raises(ValueError, match=sentence), CybORGEngine().open(trial, "sleep"):
            pass

"""A policy as an agent of CybORG's; the tests marked parity run CybORG's own evaluation."""

import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cagepool.cyborg import CybORGAgent, locate
from cagepool.cyborg.engine import CybORGEngine, WatchedEnv
from cagepool.evaluate import Trial
from cagepool.evaluate.policy import load
from cagepool.evaluate.resolve import contender
from cagepool.evaluate.rollout import game_seeds, opened
from cagepool.evaluate.statistics import tally
from cagepool.sim import dtypes, replay
from cagepool.sim.names import OFFICIAL_REDS
from tests.evaluate.folders import make_run


@pytest.fixture
def agent(tmp_path: Path) -> CybORGAgent:
    return CybORGAgent(make_run(tmp_path / "one"))


def test_an_agent_plays_as_its_policy_and_forgets_at_the_end(
    agent: CybORGAgent, tmp_path: Path
) -> None:
    trial = Trial(episodes=2)
    policy = load(tmp_path / "one")
    for seed in game_seeds(trial, "B_lineAgent"):
        batch = opened(trial, "B_lineAgent", np.array([seed]))
        policy.begin(1)
        for _ in range(50):
            action = agent.get_action(batch.observations[0].astype(int), 145)
            assert type(action) is int
            assert action == policy.act(batch.observations)[0]
            batch.step(np.array([action]))
        agent.end_episode()


def test_an_agent_has_the_methods_of_cyborgs_own(agent: CybORGAgent) -> None:
    agent.train(None)
    agent.set_initial_values(145, np.zeros(52))

    assert 0 <= agent.get_action([0] * 52, 145) < 145


@pytest.mark.parametrize(
    ("observation", "action_space", "sentence"),
    [
        (np.zeros(78), 145, r"must have 52 values, as ChallengeWrapper .* got shape \(78,\)"),
        (np.zeros(52), 41, "there must be 145 actions, as behind ChallengeWrapper; got 41"),
    ],
    ids=["observation", "actions"],
)
def test_other_wrappers_are_refused(
    agent: CybORGAgent, observation: Any, action_space: int, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        agent.get_action(observation, action_space)


@pytest.mark.parity
def test_cyborgs_own_evaluation_script_runs_with_an_agent(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "one")
    script = locate.folder(locate.load()) / "Evaluation" / "evaluation.py"
    source = script.read_text()
    # What the page tells to change, less games, no questions asked, and its file elsewhere.
    for old, new in (
        ("from CybORG.Agents.SimpleAgents.BlueLoadAgent import BlueLoadAgent", ""),
        ("agent = BlueLoadAgent()", f"agent = CybORGAgent({str(folder)!r})"),
        ("MAX_EPS = 100", "MAX_EPS = 2"),
        ("commit_hash = get_git_revision_hash()", "commit_hash = ''"),
        ("inspect.getsource(wrap)", "'\\nreturn wrapped'"),
        (
            "file_name = str(inspect.getfile(CybORG))[:-10] + '/Evaluation/'",
            f"file_name = '{folder}/'",
        ),
    ):
        assert old in source
        source = source.replace(old, new)
    printed = io.StringIO()
    names = {"__name__": "__main__", "CybORGAgent": CybORGAgent, "input": lambda _asked: "x"}

    with redirect_stdout(printed):
        exec(compile(source, script, "exec"), names)

    means = re.findall(r"red agent (\w+) and steps (\d+) is: (-?[\d.]+)", printed.getvalue())
    cells = {(red, int(steps)) for red, steps, _ in means}
    assert cells == {(red, steps) for red in OFFICIAL_REDS for steps in (30, 50, 100)}


class Replay:
    """A game of CybORG's as the native game plays it with the same draws; see `Games`."""

    games = 1

    def __init__(self, env: WatchedEnv, seed: int, played: NDArray[np.uint8]) -> None:
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
        self.at(-1)

    def at(self, step: int) -> None:
        """Show what there is after a step."""
        shown = self._rows["obs"][:, step] if step >= 0 else np.zeros((1, 52))
        self.observations = shown.astype(np.float32)
        self.moves = np.zeros(1, dtypes.MOVES)
        for name in self.moves.dtype.names or ():
            self.moves[name] = self._rows[name][:, step]

    def stream_key(self, _game: int) -> int:
        return self._seed


@pytest.mark.parity
@pytest.mark.parametrize("blue", ["policy", "random", "react-restore"])
def test_a_defender_plays_in_cyborg_as_it_would_natively(blue: str, tmp_path: Path) -> None:
    name = str(make_run(tmp_path / "one")) if blue == "policy" else blue
    engine = CybORGEngine()
    trial = Trial(episodes=2, edition=engine.edition, seed=4, max_steps=50)
    counted = tally(contender(name).defender, trial, "B_lineAgent", engine)

    env = WatchedEnv(red="B_lineAgent", max_steps=50)
    for game, seed in enumerate(game_seeds(trial, "B_lineAgent").tolist()):
        native: Any = Replay(env, seed, counted.actions[game])
        defender = contender(name).defender
        defender.begin(native)
        for step, action in enumerate(counted.actions[game]):
            assert defender.act(native)[0] == action
            native.at(step)
        assert sum(native.rewards) == pytest.approx(counted.totals[game, -1])
    lost = sum(counted.loss().values())
    assert lost == pytest.approx(-counted.totals[:, -1].mean())


@pytest.mark.parity
def test_games_of_cyborg_do_not_depend_on_how_many_are_played_at_once() -> None:
    engine = CybORGEngine()
    trial = Trial(episodes=5, edition=engine.edition, max_steps=30)
    together = tally(contender("random").defender, trial, "RedMeanderAgent", engine)

    engine.at_once = 3
    parts = tally(contender("random").defender, trial, "RedMeanderAgent", engine)

    np.testing.assert_array_equal(parts.totals, together.totals)
    np.testing.assert_array_equal(parts.actions, together.actions[:3])


@pytest.mark.parity
def test_cyborg_of_another_edition_is_refused() -> None:
    engine = CybORGEngine()
    other = {"2.1": "leaderboard", "leaderboard": "2.1"}[engine.edition]

    with pytest.raises(ValueError, match="edition must be that of the CybORG found"):
        tally(contender("sleep").defender, Trial(episodes=2, edition=other), "b_line", engine)

"""Property-based tests: laws of the game in random networks, under any actions of both players."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cagepool import _core
from cagepool.scenarios import CAGE2, Layout, Scenario
from cagepool.sim import Batch
from cagepool.sim.compliance import ComplianceTracker
from tests.scenarios.files import SAMPLES, sample
from tests.sim.games import (
    ORDER,
    SEEDS,
    int64s,
    refused_without_change,
    seed_range,
    start_batch,
    trace_rows,
)

# The slots of CAGE-2 in a layout of another kind: its rules are tables then.
BY_TABLES = Layout(CAGE2.hosts, CAGE2.action_kinds, by_position=True)
STEPS = 40
OUTPUTS = ("observations", "rewards", "truncations", "moves", "true_state")


@cache
def generated(seed: int) -> Scenario:
    return Scenario.generate(seed, images="any", subnets=(1, 6), reds=("RedMeanderAgent",))


SCENARIOS = st.sampled_from(SAMPLES).map(sample) | st.integers(0, 60).map(generated)
SETTINGS = st.fixed_dictionaries(
    {
        "edition": st.sampled_from(["2.1", "leaderboard"]),
        "green": st.booleans(),
        "max_steps": st.integers(2, 60),
        "autoreset": st.sampled_from(["next_step", "same_step"]),
        "order": st.sampled_from([None, ORDER]),
    }
)


def red_for(scenario: Scenario, choice: int) -> str:
    """A red that can play."""
    reds = [red for red in ("b_line", "meander", "sleep", "given") if not scenario.red_refusal(red)]
    return reds[choice % len(reds)]


def random_moves(
    rng: np.random.Generator, batch: Batch, scenario: Scenario
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Random actions; most of a given red are on hosts that it knows."""
    blue = rng.integers(len(batch.layout.actions), size=batch.games)
    if batch.config.red != "given":
        return blue, None
    rows = trace_rows(batch)
    hosts = len(scenario.hosts)
    red = rng.integers(len(scenario.red_actions), size=batch.games)
    for game in range(batch.games):
        known = np.flatnonzero(rows["s_known_ip"][game])
        if len(known) and rng.random() < 0.8:
            kind = rng.integers(3)
            red[game] = 1 + len(scenario.subnets) + kind * hosts + rng.choice(known)
    return blue, red


def state(batch: Batch, game: int, hosts: int) -> dict[str, Any]:
    """All that one game shows, without what depends on its batch."""
    row = trace_rows(batch)[game]
    shown: dict[str, Any] = {}
    for name in row.dtype.names or ():
        by_host = name != "s_known_net" and row[name].shape == batch.true_state["access"].shape[1:]
        shown[name] = (row[name][:hosts] if by_host else row[name]).tolist()
    for name in ("observations", "rewards", "truncations"):
        shown[name] = getattr(batch, name)[game].tolist()
    for name in ("moves", "true_state"):
        record = getattr(batch, name)[game]
        for field in {*(record.dtype.names or ())} - {"scenario", "blue_action"}:
            value = record[field]
            shown[f"{name}.{field}"] = value[:hosts].tolist() if value.shape else value.item()
    if batch.config.order:
        shown["counters"] = batch.counters[game].tolist()
    shown["sessions"] = batch.core.session_log(game)
    return shown


def play(batch: Batch, scenario: Scenario, seed: int, steps: int = STEPS) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    history = []
    for _ in range(steps):
        batch.step(*random_moves(rng, batch, scenario))
        history.append(state(batch, 0, len(scenario.hosts)))
    return history


@settings(max_examples=30)
@given(scenario=SCENARIOS, seed=SEEDS, choice=st.integers(0, 3), config=SETTINGS)
def test_the_same_seed_gives_the_same_game_in_any_network(
    scenario: Scenario, seed: int, choice: int, config: dict[str, Any]
) -> None:
    config["red"] = red_for(scenario, choice)
    histories = [
        play(
            start_batch(1, seed, scenario=scenario, layout=Layout.of([scenario]), **config),
            scenario,
            0,
        )
        for _ in range(2)
    ]
    assert histories[0] == histories[1]


@settings(max_examples=30)
@given(
    scenario=SCENARIOS,
    others=st.lists(SCENARIOS, min_size=1, max_size=3),
    seed=SEEDS,
    place=st.integers(0, 3),
    config=SETTINGS,
)
@example(
    scenario=sample("cage2_rebuilt"),
    others=[sample("cage2_rebuilt")],
    seed=0,
    place=0,
    config={"edition": "2.1", "green": False, "max_steps": 2, "autoreset": "next_step"},
)
def test_a_game_depends_on_neither_its_neighbors_nor_the_layout(
    scenario: Scenario, others: list[Scenario], seed: int, place: int, config: dict[str, Any]
) -> None:
    networks = [*others]
    place %= len(networks) + 1
    networks.insert(place, scenario)
    config |= {"red": "sleep" if scenario.red_refusal("meander") else "meander"}
    reds = [config["red"] if i == place else "sleep" for i in range(len(networks))]
    alone = start_batch(1, seed, scenario=scenario, layout=Layout.of([scenario]), **config)
    among = start_batch(
        len(networks),
        (seed - place) % 2**64,
        scenario=networks,
        layout=Layout.of(networks),
        **config | {"red": reds},
    )
    hosts = len(scenario.hosts)
    slots = scenario.slots(among.layout)
    rng = np.random.default_rng(seed)
    for _ in range(STEPS):
        action = int(rng.integers(len(scenario.actions)))
        actions = rng.integers(len(among.layout.actions), size=among.games)
        actions[place] = in_layout(among.layout, scenario, action)
        alone.step(int64s([action]))
        among.step(actions)
        expected, found = state(alone, 0, hosts), state(among, place, hosts)
        observation = np.reshape(found.pop("observations"), (-1, 4))
        assert observation[slots].ravel().tolist() == expected.pop("observations")
        assert not np.delete(observation, slots, axis=0).any()
        assert found == expected


def in_layout(layout: Layout, scenario: Scenario, action: int) -> int:
    """Index in a layout of an action of a network."""
    name = scenario.actions[action]
    kind, _, host = name.partition(" ")
    if not host:
        return layout.actions.index(name)
    slot = scenario.slots(layout)[scenario.host_index(host)]
    return layout.actions.index(f"{kind} {layout.slots[slot]}")


@settings(max_examples=20)
@given(scenario=SCENARIOS, seed=SEEDS, choice=st.integers(0, 2), config=SETTINGS)
def test_a_saved_game_goes_on_the_same_in_a_batch_with_other_networks(
    scenario: Scenario, seed: int, choice: int, config: dict[str, Any]
) -> None:
    reds = [red for red in ("b_line", "meander", "sleep") if not scenario.red_refusal(red)]
    config["red"] = reds[choice % len(reds)]
    batch = start_batch(1, seed, scenario=scenario, layout=Layout.of([scenario]), **config)
    play(batch, scenario, 1, int(seed % STEPS))
    blob = batch.save(int64s([0]))
    networks = [sample("tiny"), scenario]
    target = start_batch(
        2, 0, scenario=networks, **config | {"red": ["sleep", config["red"]], "max_steps": 60}
    )
    target.restore(int64s([1]), blob)
    assert target.scenario_ids.tolist() == [0, networks.index(scenario)]
    rng = np.random.default_rng(seed)
    for _ in range(STEPS):
        action = int(rng.integers(len(scenario.actions)))
        batch.step(int64s([action]))
        target.step(int64s([0, in_layout(target.layout, scenario, action)]))
        expected, found = (
            state(batch, 0, len(scenario.hosts)),
            state(target, 1, len(scenario.hosts)),
        )
        for shown in (expected, found):
            del shown["observations"]
        assert found == expected


@settings(max_examples=40)
@given(scenario=SCENARIOS, seed=SEEDS, choice=st.integers(0, 3), config=SETTINGS)
def test_the_reward_is_what_the_true_state_costs(
    scenario: Scenario, seed: int, choice: int, config: dict[str, Any]
) -> None:
    config |= {"red": red_for(scenario, choice), "autoreset": "next_step"}
    batch = start_batch(2, seed, scenario=scenario, layout=Layout.of([scenario]), **config)
    confidentiality = np.array(scenario.confidentiality_tenths)
    availability = np.array(scenario.availability_tenths)
    rng = np.random.default_rng(seed)
    for _ in range(STEPS):
        before = batch.truncations.copy()
        blue, red = random_moves(rng, batch, scenario)
        batch.step(blue, red)
        restores = np.array([scenario.actions[a].startswith("Restore ") for a in blue])
        stopped = (np.array(scenario.ot) & (batch.true_state["ot_running"] == 0)) @ availability
        tenths = (batch.true_state["privileged"] > 0) @ confidentiality + stopped + 10 * restores
        np.testing.assert_array_equal(
            batch.rewards[~before], (-tenths / 10)[~before], "reward of steps that were played"
        )


@settings(max_examples=10)
@given(seed=SEEDS, config=SETTINGS)
def test_threads_do_not_change_games_of_different_networks(
    seed: int, config: dict[str, Any]
) -> None:
    games = 600
    networks = [sample(name) for name in SAMPLES if not sample(name).red_refusal("meander")]
    batches = [
        start_batch(
            games,
            seed,
            scenario=networks,
            scenario_per="episode",
            red="meander",
            threads=threads,
            **config,
        )
        for threads in (1, 2)
    ]
    rng = np.random.default_rng(seed)
    for _ in range(20):
        actions = rng.integers(len(batches[0].layout.actions), size=games)
        for batch in batches:
            batch.step(actions)
        for name in OUTPUTS:
            one, two = (getattr(batch, name) for batch in batches)
            assert one.tobytes() == two.tobytes(), name


@settings(max_examples=20)
@given(seed=SEEDS, config=SETTINGS, red=st.sampled_from(["b_line", "meander", "mix"]))
def test_cage2_by_its_tables_is_the_game_that_is_compiled(
    seed: int, config: dict[str, Any], red: str
) -> None:
    built_in = start_batch(3, seed, red=red, **config)
    by_tables = start_batch(3, seed, red=red, layout=BY_TABLES, **config)
    rng = np.random.default_rng(seed)
    for _ in range(STEPS):
        actions = rng.integers(_core.ACTION_COUNT, size=3)
        built_in.step(actions)
        by_tables.step(actions)
        np.testing.assert_array_equal(built_in.observations, by_tables.observations)
        np.testing.assert_array_equal(built_in.rewards, by_tables.rewards)
        np.testing.assert_array_equal(built_in.counters, by_tables.counters)
        for name in built_in.moves.dtype.names or ():
            np.testing.assert_array_equal(built_in.moves[name], by_tables.moves[name], name)
        for name in built_in.true_state.dtype.names or ():
            one, other = built_in.true_state[name], by_tables.true_state[name]
            np.testing.assert_array_equal(one, other, name)


def test_every_network_of_a_batch_is_drawn_alike_for_episodes() -> None:
    networks = [sample(name) for name in ("tiny", "flat", "wide40", "linear4")]
    batch = Batch(4000, batch_config(networks))
    batch.reset(seed_range(0, 4000))
    counts = np.bincount(batch.scenario_ids, minlength=4)
    assert (abs(counts - 1000) < 4 * np.sqrt(750)).all()
    before = batch.scenario_ids.copy()
    batch.reset()
    assert (batch.scenario_ids != before).mean() > 0.7


def batch_config(networks: list[Scenario]) -> Any:
    return start_batch(1, scenario=networks, scenario_per="episode", red="meander").config


def test_a_snapshot_of_another_network_is_refused() -> None:
    tiny, flat = (start_batch(1, scenario=sample(name)) for name in ("tiny", "flat"))
    built_in = start_batch(1)
    refused = (
        (tiny, flat, "a snapshot must be of a scenario of this batch"),
        (tiny, built_in, "must be of CAGE-2 alone, got one of a batch of scenarios"),
        (built_in, tiny, "must be of a batch of scenarios, got one of CAGE-2 alone"),
    )
    for source, target, sentence in refused:
        with refused_without_change(target, ValueError, sentence):
            target.restore(int64s([0]), source.save(int64s([0])))


def test_a_red_that_cannot_play_a_network_is_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match="renamed_twin cannot be played: B_line"):
        start_batch(2, scenario=[sample("tiny"), sample("renamed_twin")], red="b_line")
    start_batch(2, scenario=[sample("tiny"), sample("renamed_twin")], red=["b_line", "meander"])
    with pytest.raises(ValueError, match="renamed_twin cannot be played"):
        start_batch(1, scenario=[sample("tiny"), sample("renamed_twin")], scenario_per="episode")


def test_an_action_that_a_network_lacks_does_nothing() -> None:
    batch = start_batch(2, scenario=[sample("tiny"), sample("wide40")], red="sleep")
    slot = batch.layout.slots.index(next(h for h in sample("wide40").hosts if h.startswith("Op_H")))
    action = batch.layout.actions.index(f"Restore {batch.layout.slots[slot]}")
    batch.step(np.full(2, action))
    assert batch.moves["blue_success"].tolist() == [-1, 1]
    assert batch.rewards.tolist() == [0.0, -1.0]


@pytest.mark.parametrize("knowledge", ["true", "observed"])
@pytest.mark.parametrize("name", ["tiny", "wide40", "cage2"])
def test_the_older_definition_of_compliance_is_that_of_the_tracker(
    name: str, knowledge: str
) -> None:
    scenario = CAGE2 if name == "cage2" else sample(name)
    layout = BY_TABLES if name == "cage2" else Layout.of([scenario])
    settings: dict[str, Any] = {"knowledge": knowledge, "definition": "fix-type", "alignment": 3.0}
    batch = start_batch(
        40, scenario=scenario, layout=layout, red="meander", order=ORDER, **settings
    )
    tracker = ComplianceTracker(40, ORDER, **settings, scenario=scenario, layout=layout)
    rng = np.random.default_rng(0)
    fixes = [i for i, a in enumerate(layout.actions) if a.startswith(("Restore", "Remove"))]
    for _ in range(60):
        actions = rng.choice(fixes, size=40)
        tracker.update(batch.true_state, actions)
        batch.step(actions)
        np.testing.assert_array_equal(batch.counters, tracker.counters)
        np.testing.assert_array_equal(batch.alignment, tracker.alignment)
    assert (batch.counters[:, :2] > 0).any(axis=0).all()

"""Replay of recorded games of scenarios, and of CAGE-2 through its tables."""

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cagepool.scenarios import CAGE2, Scenario
from cagepool.sim import replay
from tests.scenarios.files import SAMPLES, sample
from tests.sim.games import GOLDEN

Trace = dict[str, NDArray[Any]]

EDITIONS = ("21", "leaderboard")
INPUTS = (
    *("meta", "ep_red", "ep_green", "blue_action", "green_host", "red_target", "exploit"),
    *("detected", "esc_pick", "decoy_pick"),
)


def by_tables(scenario: Scenario) -> Scenario:
    """The scenario, with a role less if it is CAGE-2, whose rules are compiled."""
    return scenario.with_roles({"Defender": None}) if scenario == CAGE2 else scenario


def recorded(name: str, edition: str) -> Trace:
    with np.load(GOLDEN / "traces_scenarios" / f"{name}_{edition}.npz") as file:
        return dict(file)


def inputs_of(trace: Trace) -> Trace:
    """What a replay needs; red's actions only of a red that is given."""
    inputs = {name: trace[name] for name in INPUTS}
    is_given = trace["ep_red"] == json.loads(str(trace["meta"]))["red_names"].index("Given")
    inputs["red_kind"] = np.where(is_given[:, None], trace["red_kind"], -1)
    return inputs


def assert_same(result: Trace, expected: Trace) -> None:
    for name in expected.keys() - {"meta", "ep_policy"}:
        assert result[name].dtype == expected[name].dtype, name
        np.testing.assert_array_equal(result[name], expected[name], name)


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("name", SAMPLES)
def test_every_field_of_a_recording_of_another_network_is_reproduced(
    name: str, edition: str
) -> None:
    trace = recorded(name, edition)
    assert_same(replay(inputs_of(trace), scenario=by_tables(sample(name))), trace)


def test_the_recordings_have_all_reds_and_actions_that_cyborg_refused() -> None:
    traces = [recorded(name, edition) for name in SAMPLES for edition in EDITIONS]
    assert {red for trace in traces for red in trace["ep_red"].tolist()} == {0, 1, 2, 3}
    assert any((trace["red_kind"] == 6).any() for trace in traces)
    assert any((trace["decoy_pick"] >= 8).any() for trace in traces)


@pytest.mark.parametrize("scenario", [CAGE2, sample("cage2_rebuilt")], ids=lambda s: s.name)
@pytest.mark.parametrize("name", ["traces_dev", "traces_dev_leaderboard"])
def test_recordings_of_cage2_are_reproduced_by_its_tables(name: str, scenario: Scenario) -> None:
    with np.load(GOLDEN / f"{name}.npz") as file:
        trace = dict(file)
    assert_same(replay(trace, scenario=by_tables(scenario)), trace)


def test_a_recording_of_another_network_does_not_agree() -> None:
    trace = recorded("other_values", "21")
    result = replay(inputs_of(trace), scenario=sample("cage2_rebuilt"))
    assert not np.array_equal(result["reward_tenths"], trace["reward_tenths"])


def test_a_replay_of_another_network_is_a_recording_itself() -> None:
    scenario = sample("tiny")
    first = replay(inputs_of(recorded("tiny", "21")), scenario=scenario)
    assert_same(replay(first, scenario=scenario), first)
    meta = json.loads(str(first["meta"]))
    assert meta["hosts"] == [*scenario.hosts]
    assert meta["hash"] == scenario.hash


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("blue_action", 68, "blue_action of episode 0, step 3 must be below 68, got 68"),
        ("red_kind", 9, "red_kind of episode 0, step 3 must be below 6, got 9"),
        ("red_target", 63, "red_target of episode 0, step 3 must be below"),
    ],
)
def test_an_input_that_the_network_does_not_have_is_named(
    name: str, value: int, sentence: str
) -> None:
    inputs = inputs_of(recorded("tiny", "21"))
    given = np.flatnonzero(inputs["ep_red"] == 3)[:1]
    game = {field: v[given] if v.ndim else v for field, v in inputs.items()}
    game["red_kind"][0, 3], game["red_target"][0, 3] = 2, 0
    game[name] = game[name].copy()
    game[name][0, 3] = value
    with pytest.raises(ValueError, match=sentence):
        replay(game, scenario=sample("tiny"))


def test_a_red_that_cannot_play_the_network_is_refused() -> None:
    inputs = inputs_of(recorded("renamed_twin", "21"))
    inputs["ep_red"] = np.zeros_like(inputs["ep_red"])
    with pytest.raises(ValueError, match="ep_red of episode 0 must be an agent that can play"):
        replay(inputs, scenario=sample("renamed_twin"))


def test_a_given_red_needs_its_actions() -> None:
    inputs = inputs_of(recorded("tiny", "21"))
    del inputs["red_kind"]
    with pytest.raises(ValueError, match="whose red is given must have red_kind"):
        replay(inputs, scenario=sample("tiny"))


def test_fields_of_cage2_beside_another_network_do_not_change_the_result() -> None:
    trace = recorded("tiny", "21")
    inputs = inputs_of(trace)
    inputs["s_ot"] = np.zeros((*trace["blue_action"].shape, 3), np.uint8)
    assert_same(replay(inputs, scenario=sample("tiny")), trace)

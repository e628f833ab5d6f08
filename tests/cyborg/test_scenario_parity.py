"""CybORG and native games on scenarios other than CAGE-2."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cagepool import Scenario
from cagepool.cyborg import CybORGEnv
from cagepool.cyborg.dict_state import true_state_dict
from cagepool.parity import ParityConfig, record_episode, replay_mismatches, run_parity
from cagepool.parity.fuzz_policies import random_scenario
from cagepool.parity.lockstep import NativeFollower
from cagepool.parity.recorder import TRACE_KINDS
from tests.cyborg.dictionaries import summarize

SCENARIOS = Path(__file__).parents[1] / "golden" / "scenarios"
STEPS = 30


def sample(name: str) -> Path:
    return SCENARIOS / f"{name}.yaml"


@pytest.mark.parametrize("seed", range(10))
def test_a_random_scenario_is_the_same_after_it_was_saved(seed: int, tmp_path: Path) -> None:
    scenario = random_scenario(seed)
    path = tmp_path / "scenario.yaml"
    scenario.save(path)

    loaded = Scenario.load(path)

    assert (loaded.hash, loaded.sessions) == (scenario.hash, scenario.sessions)
    assert random_scenario(seed).hash == scenario.hash


def test_random_scenarios_have_orders_and_actions_that_generated_ones_lack() -> None:
    scenarios = [random_scenario(seed) for seed in range(40)]

    assert len({scenario.order_of_play for scenario in scenarios}) == 5
    assert len({scenario.action_kinds for scenario in scenarios}) > 10
    assert any(not all(scenario.monitored) for scenario in scenarios)
    assert any("Misinform" in scenario.action_kinds for scenario in scenarios)


@pytest.mark.parity
@pytest.mark.parametrize("name", ["red_first", "cage1_misinform", "own_images"])
def test_no_field_of_a_sample_scenario_differs(name: str) -> None:
    config = ParityConfig(
        scenario=(str(sample(name)),), episodes=1, max_steps=STEPS, greens=(True,)
    )
    result = run_parity(config)

    assert {cell.red for cell in result.cells} == {
        *("B_lineAgent", "RedMeanderAgent", "SleepAgent", "given")
    }
    assert result.mismatches == []
    assert sum(counts.recorded for counts in result.cells.values()) == 4


@pytest.mark.parity
def test_no_field_of_random_scenarios_differs() -> None:
    result = run_parity(ParityConfig(generate=4, episodes=1, max_steps=STEPS, greens=(True,)))

    assert len({cell.scenario for cell in result.cells}) == 4
    assert result.mismatches == []


@pytest.mark.parity
def test_a_given_red_tries_invalid_actions_and_opens_several_sessions() -> None:
    env = CybORGEnv(scenario=sample("tiny"), red="given", max_steps=150)  # far enough for Impact
    traces = [record_episode(env, "sleep", seed).trace for seed in (3, 5)]
    kinds = np.concatenate([trace["red_kind"] for trace in traces])
    users = np.concatenate([trace["s_user_seen"] + trace["s_user_unseen"] for trace in traces])

    assert {TRACE_KINDS[kind] for kind in kinds.ravel()} >= {"InvalidAction", "Impact"}
    assert users.max() > 1


@pytest.mark.parity
def test_a_scenario_with_another_value_is_noticed() -> None:
    env = CybORGEnv(scenario=sample("tiny"), red="B_lineAgent", max_steps=STEPS)
    trace = record_episode(env, "sleep", 0).trace
    scenario = env.scenario
    other = replace(scenario, availability_tenths=(0,) * len(scenario.hosts))

    assert replay_mismatches(trace, scenario) == []
    assert {found.field for found in replay_mismatches(trace, other)} == {"reward_tenths"}


@pytest.mark.parity
@pytest.mark.parametrize("name", ["blind_spots", "red_first", "other_images", "own_images"])
def test_the_dictionary_of_the_true_state_is_that_of_cyborg(name: str) -> None:
    env = CybORGEnv(scenario=sample(name), red="given", green=True, max_steps=STEPS)
    follower = NativeFollower(
        scenario=env.scenario, red="given", green=True, edition=env.edition, max_steps=STEPS
    )
    recording = record_episode(env, "decoys", 1)

    assert list(follower.mismatches(recording)) == []
    ours = true_state_dict(follower.batch, 0)
    assert summarize(ours, env.scenario) == summarize(env.true_state_dict(), env.scenario)


@pytest.mark.parity
def test_an_environment_has_the_spaces_of_its_scenario() -> None:
    scenario = Scenario.load(sample("wide40"))
    env = CybORGEnv(scenario=scenario, red="meander", max_steps=5)
    observation, _ = env.reset(seed=0)

    assert env.observation_space.shape == observation.shape == (160,)
    assert env.action_space.n == len(scenario.actions)  # type: ignore[attr-defined]
    assert env.action_names == [*scenario.actions]
    assert env.true_state()["access"].tolist() == [
        2 * (host == scenario.entry) for host in range(40)
    ]


@pytest.mark.parity
def test_a_red_that_cannot_play_the_scenario_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^the scenario odd_gates cannot be played: B_lineAgent "):
        CybORGEnv(scenario=sample("odd_gates"), red="b_line")


@pytest.mark.parity
def test_red_must_have_an_action_exactly_if_it_is_given() -> None:
    for red, red_action in (("given", None), ("sleep", 0)):
        env = CybORGEnv(scenario=sample("tiny"), red=red)
        env.reset(seed=0)
        with pytest.raises(ValueError, match=r"^red must have an action exactly if"):
            env.step(0, red_action)

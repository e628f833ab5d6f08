"""The PettingZoo environment passes PettingZoo's tests and equals the native game."""

from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Discrete
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test

from cagepool import _core
from cagepool.envs import Cage2Env
from cagepool.integrations import pettingzoo
from cagepool.sim.names import action_index
from tests.scenarios.files import sample

# Warnings that do not apply: agents differ, have masks, and blue's first observation is zero.
ADVICE = (
    "Observation is not a NumPy array",
    "Observation numpy array is all zeros",
    "Observation space for each agent probably should be",
    "Observations are different shapes",
    "Agents have different observation space sizes",
    "We recommend agents to be named",
)


@pytest.fixture
def advised() -> Any:
    with pytest.warns(UserWarning) as given:  # noqa: PT030 - all are looked at
        yield
    assert [str(one.message) for one in given if not str(one.message).startswith(ADVICE)] == []


def test_their_parallel_test_passes(capsys: pytest.CaptureFixture[str]) -> None:
    parallel_api_test(pettingzoo.parallel_env(max_steps=40), 100)
    assert "Passed Parallel API test" in capsys.readouterr().out


@pytest.mark.usefixtures("advised")
def test_their_test_of_turns_passes(capsys: pytest.CaptureFixture[str]) -> None:
    api_test(pettingzoo.env(max_steps=40), 100)
    assert "Passed API test" in capsys.readouterr().out


def test_their_tests_of_seeds_pass() -> None:
    parallel_seed_test(pettingzoo.parallel_env, 120)
    seed_test(pettingzoo.env, 120)


@pytest.mark.usefixtures("advised")
def test_their_tests_pass_on_a_scenario_of_ones_own() -> None:
    parallel_api_test(pettingzoo.parallel_env(max_steps=40, scenario=sample("tiny")), 100)
    api_test(pettingzoo.env(max_steps=40, scenario=sample("tiny")), 100)


def test_red_has_the_actions_of_its_scenario() -> None:
    scenario = sample("tiny")
    env = pettingzoo.parallel_env(scenario=scenario)
    assert env.action_space("red") == Discrete(len(scenario.red_actions))
    observations, _ = env.reset(seed=0)
    allowed = np.flatnonzero(observations["red"]["action_mask"])
    assert [scenario.red_actions[index] for index in allowed] == [
        *("Sleep", "DiscoverRemoteSystems User", "DiscoverNetworkServices User0"),
        *("ExploitRemoteService User0", "PrivilegeEscalate User0"),
    ]
    sweep = scenario.red_actions.index("DiscoverRemoteSystems User")
    observations, *_ = env.step({"blue": 0, "red": sweep})
    allowed = np.flatnonzero(observations["red"]["action_mask"])
    assert "ExploitRemoteService User1" in [scenario.red_actions[index] for index in allowed]
    assert env.game.describe() == ("blue: Sleep; red: DiscoverRemoteSystems User, success")


def test_a_picture_is_that_of_the_game() -> None:
    env = pettingzoo.env(render_mode="ansi")
    env.reset(seed=0)
    assert "Op_Server0" in env.render()
    env.close()


def finished(env: Any, chosen: Any) -> tuple[float, float]:
    """Returns of blue and of red in a whole game."""
    blue = red = 0.0
    while env.agents:
        _, rewards, terminations, _, _ = env.step(chosen())
        assert not any(terminations.values())
        blue, red = blue + rewards["blue"], red + rewards["red"]
    return blue, red


def test_a_game_is_cut_off_for_both_and_what_one_loses_the_other_wins() -> None:
    env = pettingzoo.parallel_env(max_steps=30)
    seen, infos = env.reset(seed=0)
    assert env.agents == ["blue", "red"]
    for agent in env.agents:
        assert env.observation_space(agent).contains(seen[agent])
        assert np.array_equal(infos[agent]["action_mask"], seen[agent]["action_mask"])
    restore = {"blue": action_index("Restore User1"), "red": 0}
    assert finished(env, lambda: restore) == (-30, 30)


@pytest.mark.parametrize("red", ["B_lineAgent", "RedMeanderAgent"])
def test_a_scripted_red_can_be_played_by_hand(red: str) -> None:
    index = {_core.red_action(number): number for number in range(_core.RED_ACTION_COUNT)}
    game, env = Cage2Env(red=red), pettingzoo.parallel_env()
    expected = 0.0
    game.reset(seed=4)
    env.reset(seed=4)

    def both() -> dict[str, int]:
        nonlocal expected
        expected += game.step(0)[1]
        move = game.batch.moves[0]
        return {"blue": 0, "red": index[_core.RedKind(move["red_kind"]), move["red_target"]]}

    blue, _ = finished(env, both)
    assert blue == expected < -100


def test_blues_masks_are_those_of_its_own_environment() -> None:
    env = pettingzoo.parallel_env()
    env.reset(seed=0)
    decoy = action_index("DecoyTomcat User2")
    seen, *_ = env.step({"blue": decoy, "red": 0})
    assert np.array_equal(seen["blue"]["action_mask"], env.game.action_masks())
    assert not seen["blue"]["action_mask"][decoy]


def test_a_missing_action_and_a_scripted_red_are_refused() -> None:
    env = pettingzoo.parallel_env()
    env.reset(seed=0)
    with pytest.raises(ValueError, match="each agent must have an action, got none of red"):
        env.step({"blue": 0})
    finished(env, lambda: {"blue": 0, "red": 0})
    with pytest.raises(ValueError, match="got none of blue, red"):
        env.step({})
    with pytest.raises(ValueError, match="red is played by its own agent here, got red='b_line'"):
        pettingzoo.parallel_env(red="b_line")

"""Calls of older documents of CAGE-2 work, or say what to write instead."""

from typing import Any

import numpy as np
import pytest

import cagepool
from cagepool.compat import ChallengeWrapper, ParallelEnvSharedMemory, VectorizedCAGE2Envs
from cagepool.sim.names import RED_AGENTS, action_name


class RedMeanderAgent:
    """Stands for the class of that name in CybORG."""


def test_a_wrapped_game_is_the_native_game_with_four_results() -> None:
    wrapped = ChallengeWrapper("Blue", red_agent="RedMeanderAgent", max_steps=30)
    game = cagepool.make(red="RedMeanderAgent", max_steps=100)
    wrapped.seed(5)
    actions = np.random.default_rng(0).integers(0, 145, 40)

    np.testing.assert_array_equal(wrapped.reset(), game.reset(seed=5)[0])
    for step, action in enumerate(actions, start=1):
        observation, reward, done, info = wrapped.step(action)
        assert wrapped.get_last_action("Blue") == action_name(action)
        assert wrapped.get_last_action("Red").startswith(info["moves"]["red"])
        expected, expected_reward, *_ = game.step(action)
        np.testing.assert_array_equal(observation, expected)
        np.testing.assert_array_equal(wrapped.get_observation("Blue"), expected)
        assert (reward, done) == (expected_reward, step >= 30)  # it goes on, as in CybORG
    assert wrapped.observation_space.contains(observation)
    assert wrapped.get_agent_state("True") == game.true_state_dict()


@pytest.mark.parametrize(
    "settings",
    [
        {"red_agent": "RedMeanderAgent"},
        {"red_agent": "meander"},
        {"red_agent": RedMeanderAgent},
        {"red_agent_type": RedMeanderAgent},
    ],
    ids=["name", "alias", "class", "older name"],
)
def test_a_red_agent_has_all_its_names(settings: dict[str, Any]) -> None:
    wrapped = ChallengeWrapper(**settings)

    wrapped.reset()

    assert wrapped.env.true_state()["red"] == RED_AGENTS["RedMeanderAgent"]


def test_a_wrapped_game_without_a_limit_is_never_done() -> None:
    wrapped = ChallengeWrapper()
    wrapped.reset()

    assert not any(wrapped.step(0)[2] for _ in range(300))


def test_vector_environments_of_older_documents_have_four_results() -> None:
    assert ParallelEnvSharedMemory is VectorizedCAGE2Envs
    envs = VectorizedCAGE2Envs(n_envs=4, red_agent_type=RedMeanderAgent, max_steps=3)

    assert envs.reset(seed=0).shape == (4, 52)
    returns = np.zeros(4)
    for _ in range(3):
        observations, rewards, dones, infos = envs.step([0, 0, 132, 0])
        returns += rewards

    assert dones.all()
    assert observations.shape == (4, 52)
    assert [info["episode"] for info in infos] == [{"r": r, "l": 3} for r in returns.tolist()]
    assert infos[0]["terminal_observation"].shape == (52,)
    envs.close()


def test_make_vec_takes_the_older_name_of_red() -> None:
    settings: dict[str, Any] = {"red_agent_type": RedMeanderAgent}

    envs = cagepool.make_vec(2, **settings)

    assert "red='RedMeanderAgent'" in repr(envs)


def test_what_has_no_equivalent_says_what_to_use() -> None:
    wrapped = ChallengeWrapper()

    with pytest.raises(TypeError, match=r"write ChallengeWrapper\(red_agent='B_lineAgent'\)"):
        ChallengeWrapper(env=object(), agent_name="Blue")
    with pytest.raises(ValueError, match=r"agent_name must be Blue, got 'Red'"):
        ChallengeWrapper("Red")
    with pytest.raises(ValueError, match="max_steps must be at least 1"):
        ChallengeWrapper(max_steps=0)
    with pytest.raises(ValueError, match=r"red must be one of .* got 'B_line'"):
        ChallengeWrapper(red_agent="B_line")
    with pytest.raises(AttributeError, match=r"get_ip_map.*: hosts have names"):
        wrapped.get_ip_map()
    with pytest.raises(RuntimeError, match="reset must come before step"):
        wrapped.step(0)
    with pytest.raises(ValueError, match="agent must be 'True'"):
        wrapped.get_agent_state("Blue")

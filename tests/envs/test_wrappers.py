"""Gymnasium's wrappers work on our environments."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import wrappers
from gymnasium.wrappers import vector

from tests.envs.contract import HORIZON, AnyVectorEnv, actions_for, play


def made(**options: Any) -> AnyVectorEnv:
    return gym.make_vec("cagepool/CAGE2-v0", num_envs=3, max_steps=HORIZON, **options)


@pytest.mark.parametrize("mode", ["next_step", "disabled"])
def test_vector_statistics_are_recorded(mode: str) -> None:
    envs = vector.RecordEpisodeStatistics(made(autoreset=mode))
    envs.reset(seed=0)
    play(envs, actions_for(3, 2 * HORIZON + 1))
    assert list(envs.length_queue) == [HORIZON] * 6


def test_observations_and_rewards_can_be_normalised() -> None:
    envs = vector.NormalizeReward(vector.NormalizeObservation(made()))
    envs.reset(seed=0)
    for observations, rewards, *_ in play(envs, actions_for(3, 2 * HORIZON)):
        assert np.isfinite(observations).all()
        assert np.isfinite(rewards).all()


def test_infos_can_be_lists() -> None:
    envs = vector.DictInfoToList(made(autoreset="same_step", order="reverse", statistics=True))
    envs.reset(seed=0)
    infos: Any = play(envs, actions_for(3, HORIZON))[-1][4]
    assert len(infos) == 3
    for info in infos:
        assert info["final_obs"].shape == (52,)
        assert info["final_info"]["compliance"].shape == (5,)
        assert info["episode"]["l"] == HORIZON


def test_single_wrappers_stack() -> None:
    env = gym.make("cagepool/CAGE2-v0", max_steps=HORIZON)
    stacked = wrappers.RecordEpisodeStatistics(wrappers.FrameStackObservation(env, 2))
    stacked.reset(seed=0)
    for _ in range(HORIZON):
        observation, *_, info = stacked.step(0)
    assert observation.shape == (2, 52)
    assert info["episode"]["l"] == HORIZON


def test_an_earlier_time_limit_truncates_once() -> None:
    env = gym.make("cagepool/CAGE2-v0", max_steps=HORIZON, max_episode_steps=HORIZON - 2)
    env.reset(seed=0)
    ends = [env.step(0)[3] for _ in range(HORIZON - 2)]
    assert ends == [False] * (HORIZON - 3) + [True]

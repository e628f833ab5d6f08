"""`cagepool/CAGE2-v0` is registered with Gymnasium in any order of imports."""

import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from cagepool.envs import Cage2Env, NativeVectorEnv
from cagepool.envs.settings import ENV_SETTINGS
from cagepool.envs.single import register

MAKE = "gymnasium.make('cagepool/CAGE2-v0', red='SleepAgent').reset(seed=0)"


def run(program: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


@pytest.mark.parametrize("first", ["cagepool, gymnasium", "gymnasium, cagepool"])
def test_the_order_of_imports_does_not_matter(first: str) -> None:
    run(f"import {first}; {MAKE}")


def test_gymnasium_can_import_us_by_the_name_of_the_module() -> None:
    run("import gymnasium; gymnasium.make('cagepool:cagepool/CAGE2-v0')")


def test_registering_twice_is_harmless() -> None:
    before = gym.spec("cagepool/CAGE2-v0")
    register()
    assert gym.spec("cagepool/CAGE2-v0") is before


def test_make_passes_settings_on() -> None:
    env = gym.make("cagepool/CAGE2-v0", red="RedMeanderAgent", max_steps=30)
    assert isinstance(env.unwrapped, Cage2Env)
    assert env.unwrapped.batch.config.red == "RedMeanderAgent"


def test_an_unknown_setting_is_answered_by_all_settings() -> None:
    sentence = (
        f"unknown setting redd, did you mean red\\? the settings are {', '.join(ENV_SETTINGS)}"
    )
    with pytest.raises(TypeError, match=sentence):
        gym.make("cagepool/CAGE2-v0", redd=1)


def test_the_horizon_is_ours_alone() -> None:
    env = gym.make("cagepool/CAGE2-v0", max_steps=5)
    env.reset(seed=0)
    assert [env.step(0)[3] for _ in range(5)] == [False] * 4 + [True]
    assert env.spec is not None
    assert env.spec.max_episode_steps is None


def test_the_time_limit_of_gymnasium_cuts_an_episode_short() -> None:
    env = gym.make("cagepool/CAGE2-v0", max_episode_steps=3)
    env.reset(seed=0)
    assert [env.step(0)[3] for _ in range(3)] == [False, False, True]


def test_native_games_of_gymnasium_take_its_time_limit() -> None:
    envs = gym.make_vec("cagepool/CAGE2-v0", num_envs=2, max_episode_steps=120)
    envs.reset(seed=0)
    ends = [bool(envs.step(np.zeros(2, int))[3].all()) for _ in range(120)]
    assert ends == [False] * 119 + [True]


def test_a_time_limit_may_be_switched_off() -> None:
    env = gym.make("cagepool/CAGE2-v0", max_episode_steps=-1)
    assert env.unwrapped.batch.config.max_steps == 100  # type: ignore[attr-defined]


@pytest.mark.parametrize("mode", ["vector_entry_point", None])
def test_make_vec_gives_native_games(mode: str | None) -> None:
    envs = gym.make_vec(
        "cagepool/CAGE2-v0",
        num_envs=4,
        vectorization_mode=mode,
        red="RedMeanderAgent",
        autoreset="same_step",
    )
    assert isinstance(envs, NativeVectorEnv)
    assert envs.num_envs == 4
    assert envs.batch.config.red == "RedMeanderAgent"
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert "CAGE2-v0" in repr(envs)


def test_make_vec_gives_single_games_side_by_side() -> None:
    envs = gym.make_vec("cagepool/CAGE2-v0", num_envs=2, vectorization_mode="sync", red="meander")
    assert isinstance(envs, SyncVectorEnv)
    envs.reset(seed=0)
    envs.step(envs.action_space.sample())

"""One game as a Gymnasium environment."""

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError
from gymnasium.utils.env_checker import check_env

from cagepool.envs import Cage2Env
from cagepool.sim.names import action_index, red_action_index, scenario_names
from tests.envs.contract import actions_for, assert_same

ACTIONS = [int(action) for action in actions_for(1, 30)[:, 0]]


def started(**settings: Any) -> Cage2Env:
    env = Cage2Env(**settings)
    env.reset(seed=1)
    return env


def played(env: Cage2Env, steps: int = 30) -> list[object]:
    return [env.step(action) for action in ACTIONS[:steps]]


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize("red", ["B_lineAgent", "RedMeanderAgent", "mix"])
def test_gymnasiums_checker_is_content(red: str, dtype: Any) -> None:
    env = gym.make("cagepool/CAGE2-v0", red=red, observation_dtype=dtype, render_mode="ansi")
    check_env(env.unwrapped)


def test_an_episode_is_truncated_at_its_horizon_and_never_terminated() -> None:
    env = started(max_steps=3)
    ends = [env.step(0)[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]
    with pytest.raises(RuntimeError, match="the episode is over; reset the environment before"):
        env.step(0)
    env.reset()
    env.step(0)


def test_types_are_those_that_gymnasium_wants() -> None:
    observation, reward, terminated, truncated, info = started().step(np.int64(5))
    assert observation.shape == (52,)
    assert observation.dtype.name == "float32"
    assert type(reward) is float
    assert type(terminated) is bool
    assert type(truncated) is bool
    assert info == {}


def test_the_observation_is_the_callers() -> None:
    env = started()
    seen = [env.step(action)[0] for action in ACTIONS]
    then = [one.copy() for one in seen]
    seen[-1][:] = 7
    assert_same([env.observation], then[-1:])
    env.reset()
    assert_same(seen[:-1], then[:-1])


def test_compliance_comes_with_the_end() -> None:
    env = started(order="critical_first", max_steps=30, red="RedMeanderAgent")
    infos = [env.step(action)[4] for action in ACTIONS]
    assert not any(infos[:-1])
    assert infos[-1]["compliance"].dtype == np.int32
    assert infos[-1]["compliance"].sum() > 0


@pytest.mark.parametrize(
    ("action", "error", "sentence"),
    [
        (145, IndexError, "the action must be below 145, got 145"),
        (-1, IndexError, "the action must be below 145, got -1"),
        (1.0, TypeError, "'float' object cannot be interpreted as an integer"),
        (np.array([1]), TypeError, "integer"),
        (None, TypeError, "'NoneType' object cannot be interpreted as an integer"),
    ],
)
def test_a_wrong_action_is_refused_and_nothing_is_played(
    action: Any, error: type[Exception], sentence: str
) -> None:
    env = started()
    before = env.save()
    with pytest.raises(error, match=sentence):
        env.step(action)
    assert env.save() == before


def test_reset_must_come_before_step() -> None:
    with pytest.raises(RuntimeError, match="reset must come before step"):
        Cage2Env().step(0)


def test_nothing_works_after_close() -> None:
    env = started()
    env.close()
    env.close()
    for use in (env.reset, env.save, env.true_state, lambda: env.step(0)):
        with pytest.raises(ClosedEnvironmentError, match="must not be used after it was closed"):
            use()


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_out_of_range_is_refused(seed: int) -> None:
    with pytest.raises(ValueError, match="a seed must be from 0"):
        Cage2Env().reset(seed=seed)


def test_red_plays_the_action_it_is_given() -> None:
    env = started(red="given")
    env.step(0, red_action_index("DiscoverRemoteSystems User"))
    move = env.batch.moves[0]
    assert (
        scenario_names().red_move(0, move["red_kind"], move["red_target"])
        == "DiscoverRemoteSystems User"
    )


def test_a_restored_game_goes_on_as_it_did() -> None:
    env = started()
    played(env)
    blob, seen = env.save(), env.observation
    once = played(env)
    env.restore(blob)
    assert_same(env.observation, seen)
    assert_same(played(env), once)


def test_a_reseeded_game_draws_other_random_numbers() -> None:
    env = started(red="RedMeanderAgent")
    blob = env.save()
    outcomes = set()
    for seed in range(5):
        env.restore(blob)
        env.reseed(seed)
        outcomes.add(b"".join(env.step(1)[0].tobytes() for _ in range(30)))
    assert len(outcomes) > 1


@pytest.mark.parametrize(
    "twin_of",
    [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))],
    ids=["deepcopy", "pickle"],
)
def test_a_copy_continues_the_same_random_stream(twin_of: Any) -> None:
    env = started(red="RedMeanderAgent", order="balanced", green=True)
    played(env, 20)
    twin = twin_of(env)
    assert_same(twin.observation, env.observation)
    assert_same(played(twin), played(env))
    assert_same(twin.reset(), env.reset())
    assert_same(played(twin), played(env))


def test_an_environment_can_be_copied_before_its_reset_and_after_its_close() -> None:
    env = Cage2Env()
    twin = copy.deepcopy(env)
    assert_same(twin.reset(seed=3), env.reset(seed=3))
    env.close()
    with pytest.raises(ClosedEnvironmentError):
        copy.deepcopy(env).reset()


def test_the_true_state_is_a_record_of_its_own() -> None:
    env = started(red="SleepAgent")
    truth = env.true_state()
    assert truth.shape == ()
    env.step(action_index("DecoyTomcat User2"))
    assert not truth["decoys"].any()
    assert env.true_state()["decoys"].any()
    assert env.true_state_dict().keys() >= {"success", "User0", "Op_Server0"}


def test_masks_are_a_row() -> None:
    env = started()
    decoy = action_index("DecoyTomcat User2")
    assert env.action_masks().shape == (145,)
    assert env.action_masks()[decoy]
    env.step(decoy)
    assert not env.action_masks()[decoy]
    assert not env.action_masks(monitor=False)[action_index("Monitor")]


def test_render_gives_a_picture() -> None:
    assert "Op_Server0" in started(render_mode="ansi").render()
    with pytest.raises(RuntimeError, match="made with render_mode='ansi'"):
        started().render()

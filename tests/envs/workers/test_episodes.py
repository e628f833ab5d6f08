"""`episodes` yields exactly n whole episodes, each once, on every backend."""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

from cagepool import make_vec
from cagepool.envs import Cage2Env, episodes
from tests.envs.workers.toy_envs import Checksummed


class Varied(Checksummed):
    """Episodes of different lengths."""

    episodes = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.episodes += 1
        result = super().reset(seed=seed, options=options)
        self.horizon = 1 + (self.episodes * (self.seed + 3)) % 7
        return result


class Crashing(Varied):
    """Ends its process if the action is 1."""

    def step(self, action: np.int64) -> Any:
        if action == 1:
            os._exit(1)
        return super().step(action)


def zeros(observations: Any) -> Any:
    return np.zeros(len(observations), int)


@pytest.fixture(params=["next_step", "same_step"], scope="module")
def varied_envs(request: pytest.FixtureRequest) -> Iterator[Any]:
    mode = request.param
    with make_vec(4, env=Varied, backend="workers", workers=2, autoreset=mode) as envs:
        yield envs


@pytest.mark.parametrize("n", [1, 3, 4, 50])
def test_there_are_exactly_n_whole_ones(varied_envs: Any, n: int) -> None:
    varied_envs.reset(seed=20)
    varied_envs.set_attr("episodes", 0)
    played = list(episodes(varied_envs, lambda seen: seen[:, 0] + 7, n, seed=20))
    assert len(played) == n
    for one in played:
        steps = len(one)
        assert one.observations[:, 0].tolist() == list(range(steps + 1))
        assert one.actions.tolist() == list(range(7, 7 + steps))
        assert one.observations[1:, 1].tolist() == one.actions.tolist()
        assert one.rewards.tolist() == list(range(1, steps + 1))
        assert (one.observations[:, 2] == 20 + one.env).all()
        assert one.truncated
        assert not one.terminated
    for env in range(4):  # none is lost and none comes twice
        lengths = [len(one) for one in played if one.env == env]
        assert lengths == [1 + (k * (env + 23)) % 7 for k in range(1, len(lengths) + 1)]


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_native_games_are_those_of_single_environments(mode: Any) -> None:
    envs = make_vec(3, max_steps=30, red="RedMeanderAgent", autoreset=mode)
    singles: dict[int, Cage2Env] = {}
    for one in episodes(envs, zeros, 9, seed=4):
        seed = None if one.env in singles else 4 + one.env  # later episodes continue the stream
        env = singles.setdefault(one.env, Cage2Env(max_steps=30, red="RedMeanderAgent"))
        first, _ = env.reset(seed=seed)
        results = [env.step(0) for _ in range(30)]
        assert one.observations.tolist() == [first.tolist(), *(r[0].tolist() for r in results)]
        assert one.rewards.tolist() == [result[1] for result in results]
    assert singles.keys() == {0, 1, 2}


def test_an_episode_cut_by_a_restart_is_played_anew() -> None:
    calls = 0

    def policy(seen: Any) -> Any:
        nonlocal calls
        calls += 1
        return np.full(len(seen), int(calls in (3, 9)))

    with make_vec(4, env=Crashing, backend="workers", workers=2, on_fault="restart") as envs:
        played = list(episodes(envs, policy, 12, seed=0))
        assert envs.restarts.any()
    assert len(played) == 12
    assert all(one.observations[:, 0].tolist() == list(range(len(one) + 1)) for one in played)


def test_environments_can_be_used_on_afterwards() -> None:
    with make_vec(3, env=Varied, backend="workers", workers=1) as envs:
        iterator = episodes(envs, zeros, 100, seed=0)
        next(iterator)
        assert len(list(episodes(envs, zeros, 5, seed=0))) == 5
        envs.reset(seed=0)
        envs.step([0, 0, 0])


def test_none_are_none() -> None:
    assert list(episodes(make_vec(2), zeros, 0)) == []


def test_environments_that_do_not_begin_by_themselves_are_refused() -> None:
    with pytest.raises(ValueError, match="next_step or same_step"):
        next(episodes(make_vec(2, autoreset="disabled"), zeros, 1))


def test_a_vector_environment_without_send_is_no_base_for_it() -> None:
    envs: Any = SyncVectorEnv([Varied])
    with pytest.raises(AttributeError, match="send"):
        next(episodes(envs, zeros, 1))

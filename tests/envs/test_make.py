"""`make_vec` makes what it is asked for, and refuses what would be ignored."""

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from cagepool import make_vec
from cagepool.bench.contenders import ComputingEnv, DummyEnv
from cagepool.envs import NativeVectorEnv, WorkerVectorEnv
from cagepool.errors import EnvironmentFault
from tests.envs.contract import assert_same
from tests.envs.workers.toy_envs import Checksummed

COSTLY = partial(ComputingEnv, 0.002)


@pytest.mark.parametrize(
    ("num_envs", "env", "kind"),
    [
        (2, None, NativeVectorEnv),
        (1, "cagepool/CAGE2-v0", NativeVectorEnv),
        (1, Checksummed, SyncVectorEnv),
        (2, DummyEnv, SyncVectorEnv),
        (2, [COSTLY, COSTLY], WorkerVectorEnv),
        (100, DummyEnv, WorkerVectorEnv),
    ],
)
def test_the_backend_is_chosen_by_environment_and_count(num_envs: int, env: Any, kind: Any) -> None:
    envs = make_vec(num_envs, env=env)
    assert isinstance(envs, kind)
    envs.close()


def test_a_setting_of_workers_chooses_them() -> None:
    with make_vec(1, env=DummyEnv, timeout=5) as envs:  # type: ignore[attr-defined]
        assert isinstance(envs, WorkerVectorEnv)


def test_an_environment_that_fails_when_tried_is_left_to_workers() -> None:
    with pytest.raises(EnvironmentFault, match="no such thing"):
        make_vec(2, env=_failing)


def _failing() -> gym.Env[Any, Any]:
    raise OSError("no such thing")


@pytest.mark.parametrize(("backend", "kind"), [("sync", SyncVectorEnv), ("pipes", AsyncVectorEnv)])
def test_gymnasiums_own_classes_can_be_had(backend: Any, kind: Any) -> None:
    envs = make_vec(2, env=Checksummed, backend=backend)
    assert isinstance(envs, kind)
    envs.close()


@pytest.mark.parametrize("backend", ["sync", "workers"])
def test_a_name_that_gymnasium_knows_will_do(backend: Any) -> None:
    envs = make_vec(2, env="CartPole-v1", backend=backend)
    seen, _ = envs.reset(seed=0)
    assert_same(seen[1], gym.make("CartPole-v1").reset(seed=1)[0])
    envs.close()


@pytest.mark.parametrize("backend", ["sync", "workers"])
def test_games_may_have_settings_of_their_own(backend: Any) -> None:
    envs = make_vec(2, backend=backend, max_steps=[1, 2], red=["SleepAgent", "B_lineAgent"])
    envs.reset(seed=0)
    ends = [envs.step(np.zeros(2, int))[3].tolist() for _ in range(2)]
    assert ends == [[True, False], [False, True]]
    envs.close()


@pytest.mark.parametrize(
    ("keywords", "error", "sentence"),
    [
        ({"backend": "threads"}, ValueError, "backend must be one of auto, native"),
        ({"backend": "native", "env": Checksummed}, ValueError, "'native' plays CAGE-2 only"),
        ({"backend": "sync", "workers": 2}, TypeError, "backend 'sync' does not take workers"),
        ({"backend": "native", "timeout": 2}, TypeError, "'native' does not take timeout"),
        ({"backend": "workers", "threads": 2}, TypeError, "'workers' does not take threads"),
        ({"backend": "pipes", "true_state": "every"}, TypeError, "does not take true_state"),
        ({"env": Checksummed, "red": "mix"}, TypeError, "must not be given with a function"),
        ({"env": [Checksummed]}, ValueError, "there must be 2 functions, got 1"),
        ({"backend": "sync", "max_steps": [1, 2, 3]}, ValueError, "got 3 for 2 games"),
        ({"backend": "workers", "workers": 0}, ValueError, "workers must be at least 1, got 0"),
        ({"backend": "workers", "timeout": 0}, ValueError, "timeout must be more than 0"),
        ({"backend": "workers", "on_fault": "hope"}, ValueError, "on_fault must be 'raise' or"),
        ({"backend": "workers", "max_restarts": -1}, ValueError, "max_restarts must be at"),
        ({"backend": "workers", "autoreset": "never"}, ValueError, "autoreset must be next_step"),
    ],
)
def test_what_would_be_ignored_or_is_wrong_is_refused(
    keywords: Any, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        make_vec(2, **keywords)


@pytest.mark.parametrize("backend", ["sync", "workers"])
def test_there_must_be_an_environment(backend: Any) -> None:
    with pytest.raises(ValueError, match="there must be at least 1 environment, got 0"):
        make_vec(0, env=Checksummed, backend=backend)

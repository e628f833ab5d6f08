"""Observations and actions pass through shared memory unchanged, for all spaces."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from cagepool import make_vec
from cagepool.envs import WorkerVectorEnv
from cagepool.envs.spaces import check_space_supported
from tests.envs.contract import MODES, assert_same
from tests.envs.workers.toy_envs import SPACES, Sampler

STEPS = 13


def trajectory(make: Any, backend: str, mode: str, workers: int | None) -> list[Any]:
    settings = {} if workers is None else {"workers": workers}
    envs = make_vec(5, env=make, backend=backend, autoreset=mode, **settings)  # type: ignore[call-overload]
    space = envs.action_space
    space.seed(1)
    results = [envs.reset(seed=3, options={"given": 1})]
    for _ in range(STEPS):
        results.append(envs.step(space.sample()))
        ended = results[-1][2]
        if mode == "disabled" and ended.any():
            results.append(envs.reset(options={"reset_mask": ended.copy()}))
    envs.close()
    return results


@pytest.mark.parametrize("name", SPACES)
def test_trajectories_are_those_of_gymnasiums_own_loop(name: str) -> None:
    one = MODES[[*SPACES].index(name) % len(MODES)]
    for mode in MODES if name == "box" else (one,):
        make = partial(Sampler, name, "discrete" if name == "number" else name)
        assert_same(trajectory(make, "workers", mode, 2), trajectory(make, "sync", mode, None))


@pytest.mark.parametrize("workers", [1, 3, 9])
def test_any_number_of_workers_will_do(workers: int) -> None:
    ours = trajectory(Sampler, "workers", "same_step", workers)
    assert_same(ours, trajectory(Sampler, "sync", "same_step", None))


def test_a_space_without_a_fixed_form_is_refused() -> None:
    with pytest.raises(TypeError, match=r"must be made of Box, .* got Text"):
        check_space_supported(spaces.Dict({"name": spaces.Text(5)}))


def test_actions_of_another_shape_or_kind_are_refused_and_nothing_is_stepped() -> None:
    with make_vec(3, env=Sampler, backend="workers", workers=1) as envs:
        envs.reset(seed=0)
        with pytest.raises(ValueError, match=r"actions must have shape \(3,\), got \(2,\)"):
            envs.step([1, 2])
        with pytest.raises(TypeError, match="Cannot cast"):
            envs.step([0.5, 1, 2])
        assert envs.get_attr("steps") == (0, 0, 0)


def test_methods_and_attributes_are_reached() -> None:
    with make_vec(3, env=Sampler, backend="workers", workers=2) as envs:
        envs.set_attr("horizon", [7, 8, 9])
        assert envs.get_attr("horizon") == (7, 8, 9)
        envs.set_attr("horizon", 2)
        assert envs.call("__getattribute__", "horizon") == (2, 2, 2)
        with pytest.raises(RuntimeError, match="environment 0 raised while being asked to call"):
            envs.call("nonsense")
        envs.reset(seed=0)


def test_without_copies_the_block_itself_is_returned() -> None:
    with make_vec(3, env=Sampler, backend="workers", workers=1, copy=False) as envs:
        first, _ = envs.reset(seed=0)
        second, rewards, *_ = envs.step([1, 2, 3])
        assert first is second
        then = rewards.copy()
        envs.step([3, 2, 1])
        assert (rewards != then).any()


def test_environments_can_differ_as_long_as_their_spaces_do_not() -> None:
    makers = [partial(Sampler, horizon=horizon) for horizon in (1, 2, 3)]
    with make_vec(3, env=makers, backend="workers", workers=2) as envs:
        envs.reset(seed=0)
        ends = [envs.step([0, 0, 0])[2].tolist() for _ in range(3)]
    assert ends == [[True, False, False], [False, True, False], [True, False, True]]


@pytest.mark.parametrize("workers", [1, 2])
def test_environments_with_other_spaces_are_refused(workers: int) -> None:
    makers = [partial(Sampler, "box"), partial(Sampler, "image")]
    with pytest.raises(RuntimeError, match="must have the same spaces"):
        WorkerVectorEnv(makers, workers=workers)


def test_a_local_function_can_make_them() -> None:
    horizon = np.int64(1)
    with make_vec(2, env=lambda: Sampler(horizon=int(horizon)), backend="workers") as envs:
        envs.reset(seed=0)
        assert envs.step([0, 0])[2].all()

"""Helpers of the contract tests: make any vector backend, play it and compare the results."""

from collections.abc import Callable
from multiprocessing import get_context
from typing import Any, TypeAlias, Unpack

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from cagepool import make_vec
from cagepool.envs import NativeVectorEnv
from cagepool.envs.make import Backend
from cagepool.envs.settings import EnvKeywords
from cagepool.envs.vector_args import Autoreset

AnyVectorEnv: TypeAlias = VectorEnv[Any, Any, Any]
Step: TypeAlias = tuple[Any, Any, Any, Any, dict[str, Any]]

# Processes of the backend `pipes` inherit these imports.
get_context("forkserver").set_forkserver_preload(["cagepool.envs"])

MODES = ("next_step", "same_step", "disabled")
HORIZON = 7


def native(num_envs: int, mode: str, **settings: Unpack[EnvKeywords]) -> AnyVectorEnv:
    return NativeVectorEnv(num_envs, autoreset=AutoresetMode[mode.upper()], **settings)


def other(backend: Backend) -> Callable[..., AnyVectorEnv]:
    def make(num_envs: int, mode: Autoreset, **settings: Unpack[EnvKeywords]) -> AnyVectorEnv:
        return make_vec(num_envs, backend=backend, autoreset=mode, **settings)

    return make


def started(num_envs: int = 4, **options: Any) -> NativeVectorEnv:
    """Native games after a reset."""
    envs: NativeVectorEnv = make_vec(num_envs, **options)
    envs.reset(seed=1)
    return envs


def everything(envs: NativeVectorEnv) -> list[bytes]:
    """Snapshots of all native games."""
    return envs.save(range(envs.num_envs))


sync = other("sync")
# The first is the reference; the others must give the same results.
BACKENDS: dict[str, Callable[..., AnyVectorEnv]] = {
    "sync": sync,
    "native": native,
    "pipes": other("pipes"),
    "workers": other("workers"),
}


def actions_for(num_envs: int, steps: int, seed: int = 0) -> NDArray[np.int64]:
    """Random actions, (steps, num_envs); half of them Restore, so that compliance varies."""
    generator = np.random.default_rng(seed)
    actions = generator.integers(0, 145, (steps, num_envs))
    fixes = generator.integers(132, 145, (steps, num_envs))
    return np.where(generator.random((steps, num_envs)) < 0.5, actions, fixes)


def play(envs: AnyVectorEnv, actions: NDArray[np.int64]) -> list[Step]:
    """Play the actions; with autoreset disabled, reset games whose episode ended."""
    disabled = envs.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    steps = []
    for row in actions:
        steps.append(envs.step(row))
        ended = steps[-1][3]
        if disabled and ended.any():
            steps.append((envs.reset(options={"reset_mask": ended.copy()})[0], 0, 0, 0, {}))
    return steps


def assert_same(one: object, other: object, where: str = "") -> None:
    """Compare nested dicts, tuples, lists and arrays: types, shapes and values, exactly."""
    assert type(one) is type(other), where
    if isinstance(one, dict) and isinstance(other, dict):
        assert one.keys() == other.keys(), where
        for key in one:
            assert_same(one[key], other[key], f"{where}[{key!r}]")
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
        assert len(one) == len(other), where
        for place, (left, right) in enumerate(zip(one, other, strict=True)):
            assert_same(left, right, f"{where}[{place}]")
    elif isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape), where
        if one.dtype == object:
            assert_same(list(one), list(other), where)
        else:
            np.testing.assert_array_equal(one, other, where)
    else:
        assert one == other, where

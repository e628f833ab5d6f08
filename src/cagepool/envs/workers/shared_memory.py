"""Shared memory between the parent process and all workers.

The memory is anonymous (memfd): it has a file descriptor and no name, so the kernel frees it when
the last process that maps it ends, however that process ends.
"""

import mmap
import os
import select
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from gymnasium.spaces import Space
from gymnasium.vector.utils import create_empty_array
from numpy.typing import DTypeLike, NDArray

from cagepool import _core
from cagepool.envs.spaces import Tree
from cagepool.envs.workers.descriptors import above_standard
from cagepool.envs.workers.true_state import TrueStateFormat
from cagepool.types import Bools, Bytes, Float64s, Int32s, Int64s

NO_ENV = -1  # entry of `current_env` while a worker is in no environment

_CACHE_LINE = 64  # bytes; arrays start at cache lines, so that workers do not share one


@dataclass(frozen=True)
class EnvDescription:
    """Spaces and metadata of one environment."""

    observation_space: Space[Any]
    action_space: Space[Any]
    metadata: dict[str, Any]
    render_mode: Any
    true_state: TrueStateFormat | None  # None: never queried

    def has_same_arrays(self, other: "EnvDescription") -> bool:
        """Whether both environments can share arrays."""
        ours = (self.observation_space, self.action_space, self.true_state)
        return ours == (other.observation_space, other.action_space, other.true_state)


class SharedArrays:
    """Arrays of all environments in shared memory, laid out alike in every process."""

    def __init__(
        self, allocator: "_Allocator", workers: int, num_envs: int, env: EnvDescription
    ) -> None:
        """Allocate the arrays."""
        self.current_env = _current_env(allocator, workers)
        self.completion_flags: Bytes = allocator.array((num_envs,), np.uint8)
        self.completion_countdown: Int32s = allocator.array((1,), np.int32)
        self.rewards: Float64s = allocator.array((num_envs,), np.float64)
        self.terminations: Bools = allocator.array((num_envs,), np.bool_)
        self.truncations: Bools = allocator.array((num_envs,), np.bool_)
        self.observations: Tree = allocator.tree(env.observation_space, num_envs)
        self.actions: Tree = allocator.tree(env.action_space, num_envs)
        dtype, shape = env.true_state or (np.dtype(np.uint8), ())
        rows = num_envs if env.true_state else 0
        self.true_state = allocator.array((rows, *shape), dtype)
        self.ages: Int64s = allocator.array((rows,), np.int64)  # of the true states, in steps

    def completions(self) -> _core.Completions:
        """Completion flags of all environments."""
        return _core.Completions(flags=self.completion_flags, countdown=self.completion_countdown)


class _Allocator:
    """Allocates arrays one after the other; without memory it only counts the bytes."""

    def __init__(self, memory: mmap.mmap | None = None) -> None:
        self.size = 0
        self._memory = memory

    def array(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """The next array; new memory holds zeros."""
        item = np.dtype(dtype)
        count, offset = prod(shape), self.size
        self.size += -(-count * item.itemsize // _CACHE_LINE) * _CACHE_LINE
        if self._memory is None or count == 0:
            return np.empty((0, *shape[1:]), item)
        return np.frombuffer(self._memory, item, count, offset).reshape(shape)

    def tree(self, space: Space[Any], num_envs: int) -> Tree:
        """The next arrays, nested as the space is."""
        return create_empty_array(space, n=num_envs, fn=self.array)


def _current_env(allocator: _Allocator, workers: int) -> Int64s:
    """Per worker, the environment that it is in, or NO_ENV. The first array of the memory."""
    current_env: Int64s = allocator.array((workers,), np.int64)
    return current_env


def missing_system_calls() -> list[str]:
    """System calls that worker processes need and that this platform lacks."""
    required = {"memfd_create": os, "epoll": select}
    return [name for name, module in required.items() if not hasattr(module, name)]


def check_platform() -> None:
    """Raise if worker processes cannot run on this platform."""
    missing = missing_system_calls()
    if missing:
        raise RuntimeError(
            f"worker processes need {' and '.join(missing)} (Linux), which this platform lacks; "
            "use backend 'native' for CAGE-2, 'pipes' or 'sync' for other environments"
        )


def create_memory() -> int:
    """Create anonymous shared memory of size 0; returns its file descriptor."""
    return above_standard(os.memfd_create("cagepool"))


def map_current_env(memory: int, workers: int) -> Int64s:
    """Map only `current_env`, which is needed before the size of the other arrays is known."""
    return _current_env(_Allocator(_map(memory, workers * 8)), workers)


def map_arrays(memory: int, workers: int, num_envs: int, env: EnvDescription) -> SharedArrays:
    """Map all arrays; the memory grows to hold them."""
    counter = _Allocator()
    SharedArrays(counter, workers, num_envs, env)
    return SharedArrays(_Allocator(_map(memory, counter.size)), workers, num_envs, env)


def _map(memory: int, size: int) -> mmap.mmap:
    if os.fstat(memory).st_size < size:
        os.ftruncate(memory, size)
    return mmap.mmap(memory, size)

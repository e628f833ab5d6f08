"""The memory that the caller and all workers share.

It is anonymous: known by a file descriptor alone, so that nothing remains of it once the last
process that holds it has ended, in whatever way.
"""

import mmap
import os
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from gymnasium.spaces import Space
from gymnasium.vector.utils import create_empty_array
from numpy.typing import DTypeLike, NDArray

from cagepool.envs.space_tree import Tree
from cagepool.envs.workers.true_state import TrueStateForm
from cagepool.types import Bools, Float64s, Int64s

_LINE = 64  # bytes that two processors pass between them; arrays do not share one


@dataclass(frozen=True)
class Form:
    """What one environment shows and takes."""

    observation_space: Space[Any]
    action_space: Space[Any]
    metadata: dict[str, Any]
    render_mode: Any
    true_state: TrueStateForm | None  # if it is wanted

    def fits(self, other: "Form") -> bool:
        """Whether the two can share a block."""
        ours = (self.observation_space, self.action_space, self.true_state)
        return ours == (other.observation_space, other.action_space, other.true_state)


class Arena:
    """Hands out arrays one after the other; without memory it only counts the bytes."""

    def __init__(self, memory: mmap.mmap | None = None) -> None:
        """Begin at the beginning."""
        self.size = 0
        self._memory = memory

    def array(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """The next array: zeros when the memory is new."""
        kind = np.dtype(dtype)
        count, start = prod(shape), self.size
        self.size += -(-count * kind.itemsize // _LINE) * _LINE
        if self._memory is None or count == 0:
            return np.empty((0, *shape[1:]), kind)
        return np.frombuffer(self._memory, kind, count, start).reshape(shape)


class Marks:
    """For each worker the environment that it is busy with, or NOWHERE; there from the start."""

    NOWHERE = -1

    def __init__(self, arena: Arena, workers: int) -> None:
        """Take the place of the marks, the first in the memory."""
        self.array: Int64s = arena.array((workers,), np.int64)


class Block:
    """All that is passed between processes without being pickled."""

    def __init__(self, arena: Arena, workers: int, num_envs: int, form: Form) -> None:
        """Lay the arrays out, in the same order in every process."""
        self.marks = Marks(arena, workers)
        self.rewards: Float64s = arena.array((num_envs,), np.float64)
        self.terminations: Bools = arena.array((num_envs,), np.bool_)
        self.truncations: Bools = arena.array((num_envs,), np.bool_)
        self.observations = _tree(arena, form.observation_space, num_envs)
        self.actions = _tree(arena, form.action_space, num_envs)
        dtype, shape = form.true_state or (np.dtype(np.uint8), ())
        seen = num_envs if form.true_state else 0
        self.true_state = arena.array((seen, *shape), dtype)
        self.ages: Int64s = arena.array((seen,), np.int64)

    @classmethod
    def size(cls, workers: int, num_envs: int, form: Form) -> int:
        """Bytes that it takes."""
        arena = Arena()
        cls(arena, workers, num_envs, form)
        return arena.size


def new_memory() -> int:
    """The descriptor of new memory without a name, still empty."""
    return os.memfd_create("cagepool")


def mapped_marks(memory: int, workers: int) -> Marks:
    """The marks alone, which are needed before the size of the rest is known."""
    size = workers * 8
    if os.fstat(memory).st_size < size:
        os.ftruncate(memory, size)
    return Marks(Arena(mmap.mmap(memory, size)), workers)


def mapped_block(memory: int, workers: int, num_envs: int, form: Form) -> Block:
    """The block in this process; the memory grows to hold it."""
    size = Block.size(workers, num_envs, form)
    if os.fstat(memory).st_size < size:
        os.ftruncate(memory, size)
    return Block(Arena(mmap.mmap(memory, size)), workers, num_envs, form)


def _tree(arena: Arena, space: Space[Any], num_envs: int) -> Tree:
    return create_empty_array(space, n=num_envs, fn=arena.array)

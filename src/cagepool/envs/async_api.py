"""Stepping without a barrier: what both vector environments of ours offer for it."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from cagepool.envs.arrays import integers
from cagepool.envs.space_tree import Tree
from cagepool.types import Bools, Float64s, Infos, Int64s


class Ready(NamedTuple):
    """Results of environments that are ready; row k of everything is about environment `ids[k]`."""

    ids: Int64s
    observations: Tree
    rewards: Float64s
    terminations: Bools
    truncations: Bools
    infos: Infos  # in Gymnasium's form, with entries for these environments only


class FreeVectorEnv(Protocol):
    """A vector environment that can be stepped without a barrier."""

    num_envs: int
    metadata: dict[str, Any]

    def reset(
        self, *, seed: Any = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, Infos]:
        """Start new episodes everywhere."""

    def send(self, actions: Any, ids: ArrayLike | None = None) -> None:
        """Let environments be stepped."""

    def recv(self, min_ready: int = 1) -> Ready:
        """Results of those that are ready."""


def checked_ids(ids: ArrayLike | None, out: Bools) -> Int64s:
    """The environments to be stepped, all by default; `out` are those that cannot be.

    Raises:
        IndexError: there is no such environment.
        ValueError: one is named twice, or is on its way.
    """
    if ids is None:
        ids = np.arange(len(out))
    checked = integers("ids", ids)
    if not len(checked):
        raise ValueError("ids must name at least one environment, got none")
    if checked.view(np.uint64).max() >= len(out):  # negative ones are huge
        raise IndexError(
            f"ids must be from 0 to {len(out) - 1}, got {checked.min()} to {checked.max()}"
        )
    then = out.copy()
    then[checked] = True
    if np.count_nonzero(then) != np.count_nonzero(out) + len(checked):
        _refuse(checked, out)
    return checked


def _refuse(ids: Int64s, out: Bools) -> None:
    """Say which of the environments cannot be stepped."""
    for index in ids[out[ids]]:
        raise ValueError(f"environment {index} was sent before; it must be received first")
    raise ValueError(f"ids must name each environment once, got {ids.tolist()}")


def check_none_is_out(out: Bools) -> None:
    """Refuse to go on while environments are on their way."""
    if np.count_nonzero(out):
        raise ValueError("environments that were sent must be received before anything else")


def check_min_ready(min_ready: int, on_their_way: int) -> None:
    """Refuse to wait for what cannot come."""
    if not 1 <= min_ready <= on_their_way:
        raise ValueError(
            "min_ready must be from 1 to the number of environments that were sent and not yet "
            f"received, {on_their_way}; got {min_ready}"
        )

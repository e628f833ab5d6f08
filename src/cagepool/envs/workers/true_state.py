"""True states of environments in workers: when they are queried, and their age in steps."""

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cagepool.envs.spaces import row_writer
from cagepool.envs.vector_args import AnyEnv
from cagepool.types import Int64s

TrueStateMode: TypeAlias = Literal["every", "end", "never"] | int
TrueStateFormat: TypeAlias = tuple[np.dtype[Any], tuple[int, ...]]  # dtype and shape

_AT_END = 0
_PERIODS = {"every": 1, "end": _AT_END}


def check_true_state_mode(mode: TrueStateMode) -> None:
    """Raise ValueError unless the mode is known."""
    if mode in ("every", "end", "never"):
        return
    if not isinstance(mode, Integral) or isinstance(mode, bool) or mode < 1:
        raise ValueError(
            "true_state must be 'every', 'end', 'never' or a number of steps of at least 1, "
            f"got {mode!r}"
        )


def true_state_format(env: AnyEnv, mode: TrueStateMode) -> TrueStateFormat | None:
    """Dtype and shape of the environment's true state; None if it is never queried.

    An environment that has no true state before its first reset is reset.
    """
    if mode == "never":
        return None
    query = _query_of(env)
    try:
        state = np.asarray(query())
    except Exception:  # noqa: BLE001 - an environment may raise anything before its first reset
        env.reset()
        state = np.asarray(query())
    if state.dtype.hasobject:
        raise TypeError(f"true_state() must give an array of numbers, got {state.dtype}")
    return state.dtype, state.shape


def _query_of(env: AnyEnv) -> Callable[[], Any]:
    query: Callable[[], Any] | None = None
    if env.has_wrapper_attr("true_state"):
        query = env.get_wrapper_attr("true_state")
    if not callable(query):
        raise TypeError(
            "true_state must be 'never' for environments without a method true_state(), "
            f"which {type(env.unwrapped).__name__} lacks"
        )
    return query


class TrueStateWriter:
    """Queries true states when they are due, writes them to shared memory, and counts ages.

    `local_index` is the index of an environment within its worker.
    """

    def __init__(self, mode: TrueStateMode, states: NDArray[Any], ages: Int64s) -> None:
        """Write to these arrays, one row per environment."""
        self._period = _PERIODS[mode] if isinstance(mode, str) else mode
        self._write_row = row_writer("true_state()", states)
        self._ages = ages
        self._queries: list[Callable[[], Any]] = []

    def set_envs(self, envs: Sequence[AnyEnv]) -> None:
        """Query these environments from now on."""
        self._queries = [_query_of(env) for env in envs]

    def write(self, local_index: int) -> None:
        """Query and write the true state now."""
        self._write_row(local_index, self._queries[local_index]())
        self._ages[local_index] = 0

    def after_step(self, local_index: int, *, ended: bool) -> None:
        """Handle a step, before an autoreset."""
        age = int(self._ages[local_index]) + 1
        is_due = ended if self._period == _AT_END else age >= self._period
        if is_due:
            self.write(local_index)
        else:
            self._ages[local_index] = age

    def after_autoreset(self, local_index: int) -> None:
        """Handle an autoreset; in mode `end` the state of the end of the episode stays."""
        if self._period == _AT_END:
            self._ages[local_index] += 1
        else:
            self.write(local_index)

    def after_restart(self, local_index: int) -> None:
        """Handle the loss of an environment, whose last state stays and ages."""
        self._ages[local_index] += 1

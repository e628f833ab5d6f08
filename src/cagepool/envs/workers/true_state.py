"""True states: when they are asked for, and how old they are."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cagepool.envs.env_fns import AnyEnv
from cagepool.envs.space_tree import writer
from cagepool.types import Int64s

TrueStateMode: TypeAlias = Literal["every", "end", "never"] | int
TrueStateForm: TypeAlias = tuple[np.dtype[Any], tuple[int, ...]]  # type and shape

_PERIODS = {"every": 1, "end": 0}


def check_mode(mode: TrueStateMode) -> None:
    """Refuse what is no mode."""
    if mode in ("every", "end", "never"):
        return
    if not isinstance(mode, int) or isinstance(mode, bool) or mode < 1:
        raise ValueError(
            "true_state must be 'every', 'end', 'never' or a number of steps of at least 1, "
            f"got {mode!r}"
        )


def form_of(env: AnyEnv, mode: TrueStateMode) -> TrueStateForm | None:
    """Type and shape of the environment's true state, if it is wanted.

    An environment that has none before its first reset is reset.
    """
    if mode == "never":
        return None
    query = query_of(env)
    try:
        state = np.asarray(query())
    except Exception:  # noqa: BLE001 - whatever an environment says that has not been reset
        env.reset()
        state = np.asarray(query())
    if state.dtype.hasobject:
        raise TypeError(f"true_state() must give an array of numbers, got {state.dtype}")
    return state.dtype, state.shape


def query_of(env: AnyEnv) -> Callable[[], Any]:
    """The environment's `true_state`, wrapped or not."""
    query: Callable[[], Any] = env.get_wrapper_attr("true_state")
    return query


class Truth:
    """Copies true states into the block when it is time; `ages` counts the steps since."""

    def __init__(self, mode: TrueStateMode, states: NDArray[Any], ages: Int64s) -> None:
        """Write into these rows, one an environment."""
        self._period = _PERIODS[mode] if isinstance(mode, str) else mode
        self._write = writer("true_state()", states)
        self._ages = ages
        self._queries: list[Callable[[], Any]] = []

    def follow(self, envs: Sequence[AnyEnv]) -> None:
        """Ask these environments from now on."""
        self._queries = [query_of(env) for env in envs]

    def started(self, place: int) -> None:
        """The caller has reset it."""
        self._write(place, self._queries[place]())
        self._ages[place] = 0

    def stepped(self, place: int, *, ended: bool) -> None:
        """It was stepped, and has or has not been reset since."""
        age = int(self._ages[place]) + 1
        if age >= self._period if self._period else ended:
            self.started(place)
        else:
            self._ages[place] = age

    def renewed(self, place: int) -> None:
        """It was reset after its end; the true state of the end stays if that was asked for."""
        if self._period:
            self.started(place)
        else:
            self._ages[place] += 1

    def lost(self, place: int) -> None:
        """What is known is of an environment that is no more."""
        self._ages[place] += 1

"""Arguments of environments: arrays, ids, seeds, masks, autoreset modes; one thread at a time."""

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from operator import index
from threading import Lock
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeAlias, TypeVar, cast

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import ArrayLike, NDArray

from cagepool.types import Bools, Int64s, Seeds

AnyEnv: TypeAlias = gym.Env[Any, Any]
AnyVectorEnv: TypeAlias = VectorEnv[Any, Any, Any]
EnvFn: TypeAlias = Callable[[], AnyEnv]  # makes one environment
Autoreset: TypeAlias = Literal["next_step", "same_step", "disabled"]
Seed: TypeAlias = int | Sequence[int | None] | None
Scalar = TypeVar("Scalar", bound=np.generic)
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

SEED_LIMIT = 2**64


def autoreset_name(autoreset: Autoreset | AutoresetMode) -> Autoreset:
    """Our name of an autoreset mode, which may be given as Gymnasium's enum."""
    if isinstance(autoreset, AutoresetMode):
        return cast("Autoreset", autoreset.name.lower())
    return autoreset


def as_int64s(name: str, values: ArrayLike) -> Int64s:
    """Convert to a contiguous, one-dimensional int64 array, which the core takes."""
    array = np.asarray(values)
    if array.shape == (0,):  # NumPy gives an empty list the dtype float64
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got {array.dtype}")
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {array.shape}")
    return np.ascontiguousarray(array, np.int64)


def read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """A read-only view of the same memory."""
    view = array.view()
    view.flags.writeable = False
    return view


def seeds_by_env(seed: Seed, num_envs: int) -> dict[int, int]:
    """Seeds by index of the environment: `seed + i`, or entry i of a list unless it is None."""
    if seed is None:
        return {}
    if isinstance(seed, str | float):
        raise TypeError(f"seed must be an integer, or one per game, got {seed!r}")
    seeds = range(seed, seed + num_envs) if isinstance(seed, int | np.integer) else list(seed)
    if len(seeds) != num_envs:
        raise ValueError(f"there must be one seed per game, got {len(seeds)} for {num_envs} games")
    return {env: check_seed(value) for env, value in enumerate(seeds) if value is not None}


def check_seed(seed: int) -> int:
    """Return the seed."""
    if not 0 <= index(seed) < SEED_LIMIT:
        raise ValueError(f"a seed must be from 0 to 2**64 - 1, got {seed}")
    return index(seed)


def draw_seed(rng: np.random.Generator) -> int:
    """Draw a seed for a game that was given none."""
    return int(rng.integers(SEED_LIMIT, dtype=np.uint64))


def as_seeds(seeds: Iterable[int]) -> Seeds:
    """Convert to a uint64 array, which the core takes."""
    return np.array([check_seed(seed) for seed in seeds], np.uint64)


def check_reset_mask(mask: object, num_envs: int) -> Bools:
    """The environments to reset: those of the option `reset_mask`, or all if it is None."""
    if mask is None:
        return np.ones(num_envs, np.bool_)
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (num_envs,):
        form = f"{mask.dtype} of shape {mask.shape}" if isinstance(mask, np.ndarray) else repr(mask)
        raise ValueError(f"reset_mask must be an array of {num_envs} Booleans, got {form}")
    if not mask.any():
        raise ValueError("reset_mask must name at least one game, got none")
    return mask


def check_ids(ids: ArrayLike | None, pending: Bools) -> Int64s:
    """The environments that `send` is to step, all by default; pending ones cannot be sent."""
    if ids is None:
        ids = np.arange(len(pending))
    checked = as_int64s("ids", ids)
    if not len(checked):
        raise ValueError("ids must name at least one environment, got none")
    if checked.view(np.uint64).max() >= len(pending):  # negative indices wrap to huge ones
        raise IndexError(
            f"ids must be from 0 to {len(pending) - 1}, got {checked.min()} to {checked.max()}"
        )
    pending_after = pending.copy()
    pending_after[checked] = True
    if np.count_nonzero(pending_after) != np.count_nonzero(pending) + len(checked):
        _raise_for_ids(checked, pending)
    return checked


def _raise_for_ids(ids: Int64s, pending: Bools) -> None:
    for env in ids[pending[ids]]:
        raise ValueError(f"environment {env} was sent before; it must be received first")
    raise ValueError(f"ids must name each environment once, got {ids.tolist()}")


def check_none_pending(pending: Bools) -> None:
    """Raise if environments were sent and not yet received."""
    if np.count_nonzero(pending):
        raise ValueError("environments that were sent must be received before anything else")


def check_min_ready(min_ready: int, pending_count: int) -> None:
    """Raise if `recv` would wait for more environments than are pending."""
    if not 1 <= min_ready <= pending_count:
        raise ValueError(
            "min_ready must be from 1 to the number of environments that were sent and not yet "
            f"received, {pending_count}; got {min_ready}"
        )


class HasCallLock(Protocol):
    """Has a lock that is held while a guarded method runs."""

    call_lock: Lock


Self = TypeVar("Self", bound=HasCallLock)


def acquire_call_lock(lock: Lock) -> None:
    """Acquire the lock without waiting; the caller must release it."""
    if not lock.acquire(blocking=False):
        raise RuntimeError(
            "an environment must be used by one thread at a time; another call is under way"
        )


def one_thread_at_a_time(
    method: Callable[Concatenate[Self, Parameters], Result],
) -> Callable[Concatenate[Self, Parameters], Result]:
    """Decorate a method to raise RuntimeError while another thread is in a decorated method."""

    @wraps(method)
    def guarded(
        self: Self, /, *arguments: Parameters.args, **keywords: Parameters.kwargs
    ) -> Result:
        acquire_call_lock(self.call_lock)
        try:
            return method(self, *arguments, **keywords)
        finally:
            self.call_lock.release()

    return guarded

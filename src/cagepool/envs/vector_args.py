"""Arguments of environments: names of settings, arrays, ids, seeds, masks, autoreset modes."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import index
from typing import Any, Literal, TypeAlias, TypeVar, cast

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import ArrayLike, NDArray

from cagepool._lookup import suggestion
from cagepool.types import Bools, Int64s, Seeds

Autoreset: TypeAlias = Literal["next_step", "same_step", "disabled"]
Seed: TypeAlias = int | Sequence[int | None] | None
Scalar = TypeVar("Scalar", bound=np.generic)

SEED_LIMIT = 2**64
ALIASES = {"red_agent": "red", "red_agent_type": "red", "max_episode_steps": "max_steps"}
"""Names that the command line, older documents and Gymnasium have for our settings."""


def autoreset_name(autoreset: Autoreset | AutoresetMode) -> Autoreset:
    """Our name of an autoreset mode, which may be given as Gymnasium's enum."""
    if isinstance(autoreset, AutoresetMode):
        return cast("Autoreset", autoreset.name.lower())
    return autoreset


def as_int64s(name: str, values: ArrayLike) -> Int64s:
    """Convert to a contiguous, one-dimensional int64 array, which the core takes.

    Raises:
        TypeError: the values are not integers.
        ValueError: the array does not have one dimension.
    """
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
    """Seeds by index of the environment, for those that get one.

    Args:
        seed: An integer gives environment i the seed `seed + i`; a list has one entry per
            environment, None for no seed.
        num_envs: Number of environments.

    Raises:
        TypeError: the seed is neither an integer nor a list.
        ValueError: the list has another length, or a seed is out of range.
    """
    if seed is None:
        return {}
    if isinstance(seed, str | float):
        raise TypeError(f"seed must be an integer, or one per game, got {seed!r}")
    seeds = range(seed, seed + num_envs) if isinstance(seed, int | np.integer) else list(seed)
    if len(seeds) != num_envs:
        raise ValueError(f"there must be one seed per game, got {len(seeds)} for {num_envs} games")
    return {env: check_seed(value) for env, value in enumerate(seeds) if value is not None}


def check_seed(seed: int) -> int:
    """Return the seed.

    Raises:
        ValueError: the seed does not fit into 64 bits.
    """
    if not 0 <= index(seed) < SEED_LIMIT:
        raise ValueError(f"a seed must be from 0 to 2**64 - 1, got {seed}")
    return index(seed)


def draw_seed(rng: np.random.Generator) -> int:
    """Draw a seed for a game that was given none."""
    return int(rng.integers(SEED_LIMIT, dtype=np.uint64))


def as_seeds(seeds: Iterable[int]) -> Seeds:
    """Convert to a uint64 array, which the core takes.

    Raises:
        ValueError: a seed is out of range.
    """
    return np.array([check_seed(seed) for seed in seeds], np.uint64)


def check_reset_mask(mask: object, num_envs: int) -> Bools:
    """The environments to reset: those of the option `reset_mask`, or all if it is None.

    Raises:
        ValueError: the option is not a Boolean array with at least one true entry.
    """
    if mask is None:
        return np.ones(num_envs, np.bool_)
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (num_envs,):
        form = f"{mask.dtype} of shape {mask.shape}" if isinstance(mask, np.ndarray) else repr(mask)
        raise ValueError(f"reset_mask must be an array of {num_envs} Booleans, got {form}")
    if not mask.any():
        raise ValueError("reset_mask must name at least one game, got none")
    return mask


def check_ids(ids: ArrayLike | None, pending: Bools) -> Int64s:
    """The environments that `send` is to step, all by default.

    Args:
        ids: Indices of the environments.
        pending: Environments that were sent and not yet received, which cannot be sent.

    Raises:
        IndexError: an index is out of range.
        ValueError: an environment is named twice or is pending.
    """
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
    """Raise if environments were sent and not yet received.

    Raises:
        ValueError: at least one environment is pending.
    """
    if np.count_nonzero(pending):
        raise ValueError("environments that were sent must be received before anything else")


def check_min_ready(min_ready: int, pending_count: int) -> None:
    """Raise if `recv` would wait for more environments than are pending.

    Raises:
        ValueError: `min_ready` is out of range.
    """
    if not 1 <= min_ready <= pending_count:
        raise ValueError(
            "min_ready must be from 1 to the number of environments that were sent and not yet "
            f"received, {pending_count}; got {min_ready}"
        )


def rename_aliases(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings under our names; a red agent may be given as the class that CybORG has for it.

    Raises:
        TypeError: a setting was given under two names.
    """
    renamed: dict[str, Any] = {}
    for given, value in settings.items():
        name = ALIASES.get(given, given)
        if name in renamed:
            names = [other for other in settings if ALIASES.get(other, other) == name]
            raise TypeError(f"{name} must be given once, got {' and '.join(names)}")
        renamed[name] = value.__name__ if name == "red" and isinstance(value, type) else value
    return renamed


def check_names(settings: Collection[str], known: Collection[str]) -> None:
    """Raise TypeError if a setting is unknown."""
    for name in settings:
        if name not in known:
            nearest = suggestion(name, [*known, *ALIASES]) or ","
            raise TypeError(f"unknown setting {name}{nearest} the settings are {', '.join(known)}")

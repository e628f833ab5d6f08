"""Values that `step` and `reset` of an environment return: unpacks, checks and pickles them."""

import pickle
from typing import Any

import numpy as np

from cagepool.envs.workers.protocol import unpickle
from cagepool.types import Infos

_PLAIN_TYPES = frozenset(
    {type(None), bool, int, float, str, bytes, np.bool_, np.int32, np.int64, np.float32, np.float64}
)


def unpack_step(result: Any) -> tuple[Any, Any, Any, Any, Infos]:
    """The five values that `step` must return."""
    try:
        observation, reward, terminated, truncated, info = result
    except (TypeError, ValueError):
        raise TypeError(
            "step must return five values (observation, reward, terminated, truncated, info), "
            f"got {_count_values(result)}{_conversion_hint(result)}"
        ) from None
    _check_info(info)
    return observation, reward, terminated, truncated, info


def unpack_reset(result: Any) -> tuple[Any, Infos]:
    """The two values that `reset` must return."""
    try:
        observation, info = result
    except (TypeError, ValueError):
        raise TypeError(
            f"reset must return two values (observation, info), got {_count_values(result)}"
        ) from None
    _check_info(info)
    return observation, info


def pickle_info(info: Infos) -> bytes | None:
    """Pickle an info that the parent will be able to load and merge; None if it is empty."""
    if not info:
        return None
    plain = _is_plain(info)
    pickled = pickle.dumps(info)
    if not plain:
        unpickle(pickled)
    return pickled


def _count_values(result: Any) -> str:
    return str(len(result)) if isinstance(result, tuple | list) else type(result).__name__


def _conversion_hint(result: Any) -> str:
    """How to convert the result of Gym before 0.26, which CybORG's wrappers return too."""
    if not isinstance(result, tuple | list) or len(result) != 4:
        return ""
    return "; for (observation, reward, done, info) return (observation, reward, done, False, info)"


def _check_info(info: Any) -> None:
    if not isinstance(info, dict):
        raise TypeError(f"an info must be a dict, got {type(info).__name__}")


def _is_plain(info: Infos, parents: tuple[int, ...] = ()) -> bool:
    """Whether an info is made of types that can always be unpickled."""
    if id(info) in parents:
        raise ValueError("an info must not contain itself")
    plain = type(info) is dict
    for key, value in info.items():
        if isinstance(value, dict):
            plain &= _is_plain(value, (*parents, id(info)))
        elif type(value) is np.ndarray:
            plain &= not value.dtype.hasobject
        else:
            plain &= type(value) in _PLAIN_TYPES
        plain &= type(key) is str
    return plain

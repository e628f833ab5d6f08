"""Checks that a value is in a space, and says what is wrong with one that is not."""

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Space, Tuple

_SHOWN_CHARS = 200


def check_in_space(name: str, space: Space[Any], value: Any) -> None:
    """Raise ValueError, with a sentence about dtype, shape or bounds, unless the space contains it.

    Args:
        name: Of the value, for the sentence.
        space: As in `space.contains`.
        value: One observation or action.
    """
    if isinstance(space, Dict):
        if not isinstance(value, dict) or value.keys() != space.spaces.keys():
            got = list(value) if isinstance(value, dict) else type(value).__name__
            raise ValueError(f"{name} must be a dict of {list(space.spaces)}, got {got}")
        for key, child in space.spaces.items():
            check_in_space(f"{name}[{key!r}]", child, value[key])
    elif isinstance(space, Tuple):
        children = tuple(value) if isinstance(value, tuple | list | np.ndarray) else None
        if children is None or len(children) != len(space.spaces):
            got = type(value).__name__ if children is None else f"{len(children)} values"
            raise ValueError(f"{name} must be a tuple of {len(space.spaces)} values, got {got}")
        for index, (child, part) in enumerate(zip(space.spaces, children, strict=True)):
            check_in_space(f"{name}[{index}]", child, part)
    elif isinstance(space, Box):
        _check_in_box(name, space, value)
    elif not space.contains(value):
        shown = repr(value)[:_SHOWN_CHARS]
        raise ValueError(f"{name} must be in {space}, got {shown} ({type(value).__name__})")


def _check_in_box(name: str, space: Box, value: Any) -> None:
    if not isinstance(value, np.ndarray):  # lists and numbers are cast, as in Box.contains
        try:
            value = np.asarray(value, space.dtype)
        except (ValueError, TypeError, OverflowError):
            shown = repr(value)[:_SHOWN_CHARS]
            raise ValueError(f"{name} must be an array of {space.dtype}, got {shown}") from None
    if not np.can_cast(value.dtype, space.dtype):
        raise ValueError(f"{name} must have dtype {space.dtype}, got {value.dtype}")
    if value.shape != space.shape:
        raise ValueError(f"{name} must have shape {space.shape}, got {value.shape}")
    inside = (value >= space.low) & (value <= space.high)  # False for NaN
    if not np.all(inside):
        first = tuple(map(int, np.argwhere(~np.atleast_1d(inside))[0]))[: value.ndim]
        where = f"[{', '.join(map(str, first))}]" if first else ""
        count = int(np.size(inside) - np.count_nonzero(inside))
        more = f", and {count - 1} more values outside of their bounds" if count > 1 else ""
        raise ValueError(
            f"{name}{where} must be from {space.low[first]} to {space.high[first]}, "
            f"got {value[first]}{more}"
        )

"""Arrays as they go in and out of the environments."""

from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cagepool.types import Int64s

Scalar = TypeVar("Scalar", bound=np.generic)


def integers(name: str, values: ArrayLike) -> Int64s:
    """A row of integers as the core takes it, from anything that NumPy reads as one.

    Raises:
        TypeError: the values are not integers.
        ValueError: they are not a row.
    """
    array = np.asarray(values)
    if array.shape == (0,):  # NumPy takes an empty list for floats
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got {array.dtype}")
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {array.shape}")
    return np.ascontiguousarray(array, np.int64)


def read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """The same memory, which cannot be written this way."""
    view = array.view()
    view.flags.writeable = False
    return view

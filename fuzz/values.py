"""Random values: arrays that are nearly right, and objects that are not at all."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

T = TypeVar("T")

INTEGERS = (
    0,
    1,
    -1,
    2,
    12,
    13,
    119,
    120,
    144,
    145,
    255,
    256,
    2**31 - 1,
    2**31,
    2**32,
    2**53,
    2**62,
)
EXTREMES = (*INTEGERS, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 2**64, -(2**70))
DTYPES = (
    "?",
    "i1",
    "u1",
    "i2",
    "i4",
    "u4",
    "i8",
    "u8",
    "f2",
    "f4",
    "f8",
    "c8",
    ">i8",
    "S3",
    "O",
    "M8[s]",
)
OBJECTS: tuple[Any, ...] = (
    None, True, False, 1.5, float("nan"), float("inf"), "", "x\ny", "mix", b"", b"\0" * 300, (), [],
    [[]], [0, [1]], {}, {"a": 1}, set(), slice(None), object(), Ellipsis, NotImplemented, int, 1j,
    np.int64(3), np.float32("nan"), np.array(None), np.zeros(()), range(3), memoryview(b"abc"),
)  # fmt: skip


def pick(rng: Generator, items: Sequence[T]) -> T:
    """Return a random item."""
    return items[int(rng.integers(len(items)))]


def chance(rng: Generator, probability: float) -> bool:
    """Return True with this probability."""
    return bool(rng.random() < probability)


def junk(rng: Generator) -> Any:
    """Return an object that no call expects."""
    kind = rng.integers(4)
    if kind == 0:
        return pick(rng, OBJECTS)
    if kind == 1:
        return pick(rng, EXTREMES)
    if kind == 2:
        return [pick(rng, EXTREMES) for _ in range(rng.integers(5))]
    return strange_array(rng)


def strange_array(rng: Generator) -> NDArray[Any]:
    """Return an array of any type, rank and size."""
    shape = tuple(int(size) for size in rng.integers(0, 5, rng.integers(4)))
    return np.zeros(shape, pick(rng, DTYPES))


def damaged_array(rng: Generator, array: NDArray[Any]) -> Any:
    """Return an array that differs from a good one in type, shape, memory layout or values."""
    return pick(rng, DAMAGES)(rng, array)


def _other_type(rng: Generator, array: NDArray[Any]) -> Any:
    return array.astype(pick(rng, ("i1", "i4", "u8", "f4", "f8", ">i8", "O")))


def _other_length(rng: Generator, array: NDArray[Any]) -> Any:
    return np.resize(array, (int(rng.integers(6)), *array.shape[1:]))


def _strided(_: Generator, array: NDArray[Any]) -> Any:
    return np.repeat(array, 2, axis=0)[::2]


def _broadcast(_: Generator, array: NDArray[Any]) -> Any:
    return np.broadcast_to(array[:1], array.shape) if len(array) else array


def _read_only(_: Generator, array: NDArray[Any]) -> Any:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def _extreme_value(rng: Generator, array: NDArray[Any]) -> Any:
    if not array.size or array.dtype.kind not in "iu":
        return junk(rng)
    limits = np.iinfo(array.dtype)
    changed = array.copy()
    values = [value for value in EXTREMES if limits.min <= value <= limits.max]
    changed.flat[int(rng.integers(array.size))] = pick(rng, values)
    return changed


def unaligned(array: NDArray[Any]) -> Any:
    """Return the same values one byte off, as NumPy's array or as a memoryview."""
    memory = bytearray(array.nbytes + 1)
    memory[1:] = array.tobytes()
    if array.ndim == 1 and array.dtype == np.int64:
        return memoryview(memory)[1:].cast("q")
    return np.frombuffer(memory, np.uint8)[1:].view(array.dtype).reshape(array.shape)


DAMAGES: tuple[Callable[[Generator, NDArray[Any]], Any], ...] = (
    _other_type,
    _other_length,
    _strided,
    _broadcast,
    _read_only,
    _extreme_value,
    lambda _, array: unaligned(array),
    lambda _, array: array[..., None],
    lambda rng, _: junk(rng),
)


def maybe(rng: Generator, array: NDArray[Any], probability: float = 0.25) -> Any:
    """Return the array, or with this probability a damaged one."""
    return damaged_array(rng, array) if chance(rng, probability) else array

"""Arrays of many environments, nested as their space is: one array, or a tuple or dict of trees."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Tuple
from numpy.typing import NDArray

from cagepool.types import Int64s

Tree: TypeAlias = Any  # NDArray, tuple[Tree, ...] or dict[str, Tree]
Write: TypeAlias = Callable[[int, Any], None]
Read: TypeAlias = Callable[[int], Any]


def check_supported(space: Space[Any]) -> None:
    """Refuse spaces whose values have no fixed form.

    Raises:
        TypeError: the space holds another one than those that can be laid out as arrays.
    """
    if isinstance(space, Dict):
        parts = list(space.spaces.values())
    elif isinstance(space, Tuple):
        parts = list(space.spaces)
    elif isinstance(space, Box | Discrete | MultiDiscrete | MultiBinary):
        return
    else:
        raise TypeError(
            "a space must be made of Box, Discrete, MultiDiscrete, MultiBinary, Dict and Tuple "
            f"to be shared, got {space}"
        )
    for part in parts:
        check_supported(part)


def mapped(change: Callable[..., Any], tree: Tree, *others: Tree) -> Tree:
    """A tree of the same form, from what `change` makes of each array and its counterparts."""
    if isinstance(tree, dict):
        return {
            key: mapped(change, part, *(other[key] for other in others))
            for key, part in tree.items()
        }
    if isinstance(tree, tuple):
        return tuple(mapped(change, *parts) for parts in zip(tree, *others, strict=True))
    return change(tree, *others)


def part(tree: Tree, places: slice) -> Tree:
    """The same memory, of these places only."""
    return mapped(lambda array: array[places], tree)


def rows(tree: Tree, ids: Int64s) -> Tree:
    """A copy of what stands at these places."""
    if isinstance(tree, np.ndarray):
        return tree.take(ids, 0)  # three times as fast as tree[ids]
    return mapped(lambda array: array.take(ids, 0), tree)


def copied(tree: Tree) -> Tree:
    """A copy of each array."""
    if isinstance(tree, np.ndarray):
        return tree.copy()
    return mapped(np.copy, tree)


def assign(tree: Tree, places: Any, values: Tree) -> None:
    """Put values, nested in the same way, at these places: an array of them, or all.

    Raises:
        ValueError: a value has another shape.
        TypeError: a value cannot be cast without loss of kind.
    """
    if isinstance(tree, dict):
        for key, part in tree.items():
            assign(part, places, values[key])
    elif isinstance(tree, tuple):
        for part, value in zip(tree, values, strict=True):
            assign(part, places, value)
    else:
        count = len(tree) if isinstance(places, slice) else len(places)
        tree[places] = conformed("actions", values, (count, *tree.shape[1:]), tree.dtype)


def reader(tree: Tree) -> Read:
    """A function that gives the value of one environment, as its own."""
    if isinstance(tree, dict):
        parts = {key: reader(part) for key, part in tree.items()}
        return lambda place: {key: read(place) for key, read in parts.items()}
    if isinstance(tree, tuple):
        reads = [reader(part) for part in tree]
        return lambda place: tuple(read(place) for read in reads)
    if tree.ndim == 1:
        read_scalar: Read = tree.__getitem__
        return read_scalar
    return lambda place: tree[place].copy()


def writer(name: str, tree: Tree) -> Write:
    """A function that puts down the value of one environment; it raises if the form is wrong."""
    if isinstance(tree, dict):
        return _dict_writer({key: writer(f"{name}[{key!r}]", part) for key, part in tree.items()})
    if isinstance(tree, tuple):
        return _tuple_writer([writer(f"{name}[{k}]", part) for k, part in enumerate(tree)])
    return _array_writer(name, tree)


def _dict_writer(parts: dict[str, Write]) -> Write:
    def write(place: int, value: Any) -> None:
        if value.keys() != parts.keys():
            raise ValueError(f"there must be values of {[*parts]}, got {[*value]}")
        for key, put in parts.items():
            put(place, value[key])

    return write


def _tuple_writer(parts: list[Write]) -> Write:
    def write(place: int, value: Any) -> None:
        for put, part in zip(parts, value, strict=True):
            put(place, part)

    return write


def _array_writer(name: str, array: NDArray[Any]) -> Write:
    shape, dtype = array.shape[1:], array.dtype
    views = [array[place, ...] for place in range(len(array))]

    def write(place: int, value: Any) -> None:
        views[place][...] = conformed(name, value, shape, dtype)

    if len(shape) != 1 or dtype.names:
        return write
    memory = [view.data for view in views]

    def write_fast(place: int, value: Any) -> None:
        try:  # a memoryview takes only what has its shape and type, and is quick about it
            memory[place][:] = value
        except (TypeError, ValueError, NotImplementedError):
            write(place, value)

    return write_fast


def conformed(name: str, value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The value as an array of this shape and type.

    Raises:
        ValueError: the shape is another.
        TypeError: the type is of another kind.
    """
    array = np.asarray(value)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    if array.dtype.kind in "iub" and dtype.kind in "iub":
        return array.astype(dtype, copy=False)
    return array.astype(dtype, casting="same_kind", copy=False)

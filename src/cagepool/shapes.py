"""Whether what a JSON file holds has the shape that a type describes."""

from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

_NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


def check(value: object, shape: Any, place: str) -> None:
    """Check a value and all that is in it; keys that the shape does not name may be there.

    Args:
        value: What JSON came to.
        shape: A typed dict, `list[...]`, `dict[str, ...]`, `... | None`, str, int, float or bool.
        place: Where the value stands, for the sentence.

    Raises:
        ValueError: something is missing or of another kind.
    """
    origin, inner = get_origin(shape), get_args(shape)
    if is_typeddict(shape):
        _check_keys(_of_kind(value, dict, "an object", place), shape, place)
    elif origin is UnionType:
        if value is not None:
            check(value, next(part for part in inner if part is not NoneType), place)
    elif origin is list:
        for number, part in enumerate(_of_kind(value, list, "a list", place)):
            check(part, inner[0], f"{place}[{number}]")
    elif origin is dict:
        for key, part in _of_kind(value, dict, "an object", place).items():
            check(part, inner[1], f"{place}.{key}")
    else:
        kinds = (int, float) if shape is float else (shape,)
        _of_kind(value, kinds, _NAMES[shape], place)


def _check_keys(value: dict[str, Any], shape: Any, place: str) -> None:
    for key, inner in get_type_hints(shape).items():
        if key not in value:
            raise ValueError(f"{place} must have {key!r}, which it lacks")
        check(value[key], inner, f"{place}.{key}")


def _of_kind(value: Any, kinds: Any, name: str, place: str) -> Any:
    if not isinstance(value, kinds):
        raise ValueError(f"{place} must be {name}, got {value!r:.40}")
    return value

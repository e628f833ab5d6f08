"""Exceptions that a caller may want to catch, checks of settings, values in messages."""

from collections.abc import Collection, Iterable
from typing import Any, Literal, get_args, get_origin, get_type_hints

from cagepool._lookup import suggestion


class EnvironmentFault(RuntimeError):  # noqa: N818 - the fault is in the environment, not here
    """An environment in a worker process raised, died or hung.

    Attributes:
        index: Index of the environment; None if the worker was stepping none.
        worker: Index of the worker process.
        trace: Traceback in the worker; empty if there is none.
    """

    def __init__(self, sentence: str, *, index: int | None, worker: int, trace: str = "") -> None:
        """Set the message: a sentence, followed by the traceback if there is one."""
        super().__init__(f"{sentence}\n\n{trace}" if trace else sentence)
        self.index = index
        self.worker = worker
        self.trace = trace


class RunFileError(ValueError):
    """A file of a run folder cannot be read.

    It is damaged, too large, not a regular file, or has a newer format.
    """


def short_repr(value: object) -> str:
    """The value in one line of at most 100 characters, for messages."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 100 else f"{text[:97]}..."


def check_names(what: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise ValueError if a name is unknown, with all known ones."""
    unknown = [name for name in given if name not in known]
    if unknown:
        nearest = suggestion(unknown[0], known)
        raise ValueError(
            f"{what} must be among {', '.join(known)}; got {', '.join(unknown)}{nearest}"
        )


def check_types(group: str, config: Any) -> None:
    """Raise ValueError if a setting has another type or is not one of its choices.

    A whole number is a number too.
    """
    for name, hint in get_type_hints(type(config)).items():
        value = getattr(config, name)
        label = f"{group}.{name}"
        if get_origin(hint) is tuple:
            if not isinstance(value, tuple) or not all(type(width) is int for width in value):
                raise ValueError(f"{label} must be a list of whole numbers, got {value!r}")
        elif get_origin(hint) is Literal:
            if value not in get_args(hint):
                choices = ", ".join(get_args(hint))
                raise ValueError(f"{label} must be one of {choices}; got {value!r}")
        else:
            _check_type(label, value, get_args(hint) or (hint,))


def _check_type(label: str, value: Any, allowed: tuple[Any, ...]) -> None:
    if type(value) in allowed or (float in allowed and type(value) is int):
        return
    if str in allowed and callable(value):
        kind = "class" if isinstance(value, type) else "function"
        named = getattr(value, "__name__", type(value).__name__)
        raise ValueError(
            f"{label} must be a name such as my_module:{named}, which every process can import; "
            f"got the {kind} itself"
        )
    kinds = " or ".join("null" if kind is type(None) else kind.__name__ for kind in allowed)
    raise ValueError(f"{label} must be of type {kinds}, got {value!r}")


def check_at_least(name: str, value: float, least: int) -> None:
    """Raise ValueError if the value is below the least one, or not finite."""
    if not least <= value < float("inf"):
        raise ValueError(f"{name} must be at least {least}, got {value}")


def check_positive(name: str, value: float) -> None:
    """Raise ValueError if the value is not above 0, or not finite."""
    if not 0 < value < float("inf"):
        raise ValueError(f"{name} must be above 0, got {value}")


def check_share(name: str, value: float) -> None:
    """Raise ValueError if the value is not from 0 to 1."""
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be from 0 to 1, got {value}")

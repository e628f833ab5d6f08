"""Values of a file with the name of their field, and checks of their types."""

from collections.abc import Sequence
from typing import Any

from cagepool.errors import short_repr

MAX_NAME = 100


class RefusedError(ValueError):
    """A sentence about a field of a file; the caller adds the name of the file."""


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


_NOTHING = _Nothing()


class Field:
    """A value of a file and its path, such as `Hosts.User1.image`."""

    __slots__ = ("path", "value")

    def __init__(self, value: Any, path: str = "") -> None:
        """A value, and its path in the file; empty for the whole file."""
        self.value = value
        self.path = path

    @property
    def is_absent(self) -> bool:
        """Whether the file lacks the field."""
        return self.value is _NOTHING

    def refused(self, requirement: str) -> RefusedError:
        """The error that says what must hold of the field, and what it is."""
        return RefusedError(
            f"{self.path or 'the file'} must {requirement}, got {short_repr(self.value)}"
        )

    def entries(self) -> dict[str, "Field"]:
        """Entries of a mapping, by name."""
        if not isinstance(self.value, dict):
            raise self.refused("be a mapping")
        for key in self.value:
            if not _is_word(key):
                raise RefusedError(
                    f"names in {self.path or 'the file'} must be single words of at most "
                    f"{MAX_NAME} characters, got {short_repr(key)}"
                )
        return {key: Field(value, self._path_of(key)) for key, value in self.value.items()}

    def settings(self, allowed: Sequence[str] | None = None) -> dict[str, "Field"]:
        """Entries of a mapping whose keys may have spaces, refused if they are not `allowed`."""
        if not isinstance(self.value, dict):
            raise self.refused("be a mapping")
        for key in self.value:
            if not isinstance(key, str) or (allowed is not None and key not in allowed):
                names = "be text" if allowed is None else f"be one of {', '.join(allowed)}"
                raise RefusedError(
                    f"the fields of {self.path or 'the file'} must {names}; got {short_repr(key)}"
                )
        return {key: Field(value, self._path_of(key)) for key, value in self.value.items()}

    def get(self, key: str) -> "Field":
        """An entry of a mapping, which may be absent."""
        if not isinstance(self.value, dict):
            raise self.refused("be a mapping")
        return Field(self.value.get(key, _NOTHING), self._path_of(key))

    def items(self) -> list["Field"]:
        """Items of a list."""
        if not isinstance(self.value, list):
            raise self.refused("be a list")
        return [Field(value, f"{self.path}[{i}]") for i, value in enumerate(self.value)]

    def text(self) -> str:
        """A text."""
        if not isinstance(self.value, str) or not self.value:
            raise self.refused("be a text")
        return self.value

    def one_of(self, choices: Sequence[str]) -> str:
        """A text that is one of the choices."""
        if not isinstance(self.value, str) or self.value not in choices:
            *most, last = choices
            raise self.refused(f"be {', '.join(most)} or {last}" if most else f"be {last}")
        return self.value

    def _path_of(self, key: object) -> str:
        return f"{self.path}.{key}" if self.path else str(key)


def _is_word(key: object) -> bool:
    """Whether a name is a printable word; a terminal would obey control characters."""
    return (
        isinstance(key, str) and key.split() == [key] and key.isprintable() and len(key) <= MAX_NAME
    )

"""Read YAML of strangers: plain values only, limited in size, depth and number of values.

The values are built from the parser's events. PyYAML's own composers follow the nesting of a file
by recursion, which ends the process for a file that is nested deeply, and its merge keys multiply.
"""

import re
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cagepool import _optional, runs
from cagepool.errors import RunFileError, short_repr

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


MAX_BYTES = 1_000_000
MAX_DEPTH = 20
MAX_VALUES = 100_000  # with those of aliases

_WHOLE_NUMBER = re.compile("-?(0|[1-9][0-9]{0,9})")
_BOOLS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class UnusualScalar:
    """A plain scalar that YAML reads as something else than text, a whole number or a bool."""

    def __init__(self, text: str) -> None:
        """Keep the text of the file, for messages."""
        self._text = text

    def __repr__(self) -> str:
        return self._text


def read_yaml(path: Path) -> Any:
    """Values of a YAML file: dictionaries, lists, text, whole numbers, bools and None."""
    with _optional.require("a scenario file", None, "yaml"):
        import yaml  # noqa: PLC0415 - only files need it

    content = runs.read_bytes(path, MAX_BYTES, follow_link=True)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Builder(yaml).build(yaml.parse(content, Loader=loader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" (line {mark.line + 1})" if mark is not None else ""
        problem = getattr(error, "problem", None) or "its text cannot be decoded"
        raise RunFileError(f"{path} must be a YAML file: {problem}{place}") from error
    except _Refused as error:
        raise RunFileError(f"{path} {error}") from error


class _Refused(Exception):  # noqa: N818 - never leaves this module
    pass


class _Builder:
    """Builds values from events, without recursion."""

    def __init__(self, yaml: Any) -> None:
        self._yaml = yaml
        self._resolvers = yaml.SafeLoader.yaml_implicit_resolvers
        self._plain: dict[str, Any] = {}  # values of plain scalars
        self._anchored: dict[str | None, tuple[Any, int]] = {}  # and number of values
        self._count = 0

    def build(self, events: Iterator[Any]) -> Any:
        """The value of the only document."""
        yaml = self._yaml
        stack = [_Collection([], None, 0)]
        for event in events:
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self._add(stack[-1], self._scalar(event), 1, event)
            elif kind in (yaml.MappingStartEvent, yaml.SequenceStartEvent):
                self._check_tag(event)
                if len(stack) > MAX_DEPTH:
                    raise _refusal(f"must be nested at most {MAX_DEPTH} deep", event)
                items: Any = {} if kind is yaml.MappingStartEvent else []
                stack.append(_Collection(items, event.anchor, self._count))
            elif kind in (yaml.MappingEndEvent, yaml.SequenceEndEvent):
                done = stack.pop()
                self._anchored[done.anchor] = (done.items, self._count - done.start + 1)
                self._add(stack[-1], done.items, 1, event)
            elif kind is yaml.AliasEvent:
                self._add(stack[-1], *self._target(event), event)
        return _only_document(stack[0].items)

    def _target(self, event: Any) -> tuple[Any, int]:
        """The value of an alias, and the number of values in it."""
        if event.anchor not in self._anchored:
            raise _refusal(f"must have an anchor before the alias *{event.anchor}", event)
        return self._anchored[event.anchor]

    def _add(self, parent: "_Collection", value: Any, count: int, event: Any) -> None:
        self._count += count
        if self._count > MAX_VALUES:
            raise _Refused(f"must hold at most {MAX_VALUES:,} values, it holds more")
        if isinstance(parent.items, list):
            parent.items.append(value)
        elif parent.has_key:
            parent.items[parent.key] = value
            parent.has_key = False
        elif isinstance(value, Hashable):
            parent.key, parent.has_key = value, True
        else:
            raise _refusal("must have keys that are words", event)

    def _scalar(self, event: Any) -> Any:
        self._check_tag(event)
        text = value = event.value
        if event.implicit[0]:  # not quoted
            if text not in self._plain:
                self._plain[text] = self._plain_value(text, event)
            value = self._plain[text]
        if event.anchor:
            self._anchored[event.anchor] = (value, 1)
        return value

    def _plain_value(self, text: str, event: Any) -> Any:
        for tag, pattern in self._resolvers.get(text[:1], ()):
            if not pattern.match(text):
                continue
            kind = tag.rpartition(":")[2]
            if kind == "merge":
                raise _refusal("must not have merge keys (<<)", event)
            if kind == "int" and _WHOLE_NUMBER.fullmatch(text):
                return int(text)
            if kind == "bool":
                return _BOOLS[text.lower()]
            return None if kind == "null" else UnusualScalar(text)
        return text

    def _check_tag(self, event: Any) -> None:
        if event.tag is not None:
            raise _refusal(f"must not have tags, it has {event.tag!r}", event)


class _Collection:
    """A mapping or sequence that is being built."""

    def __init__(self, items: Any, anchor: str | None, start: int) -> None:
        self.items = items
        self.anchor = anchor
        self.start = start  # number of values before it
        self.key: Hashable = None
        self.has_key = False


def _only_document(documents: list[Any]) -> Any:
    if len(documents) != 1:
        raise _Refused(f"must hold one YAML document, it holds {len(documents)}")
    return documents[0]


def _refusal(sentence: str, event: Any) -> _Refused:
    return _Refused(f"{sentence} (line {event.start_mark.line + 1})")

"""Read YAML of strangers: plain values only, limited in size, depth and number of values.

The values are built from the parser's events. PyYAML's own composers follow the nesting of a file
by recursion, which ends the process for a file that is nested deeply, and its merge keys multiply.
"""

import re
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

from cagepool import _optional, runs
from cagepool.errors import RunFileError

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
    """Values of a YAML file: dictionaries, lists, text, whole numbers, bools and None.

    Raises:
        ValueError: the file cannot be read, is too large, or is not such a file.
    """
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

"""Results of benches as they stand in JSON files."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

import msgspec


class Machine(TypedDict):
    """What was measured on; more is there for readers."""

    processor: str
    cores: int
    python: str
    numpy: str
    commit: str | None
    load: float


class Cost(TypedDict):
    """Of one game step."""

    median: float
    quartiles: list[float]
    repetitions: int


class Turns(TypedDict):
    """Every repetition."""

    calls: int
    steps_in_a_call: int
    seconds: list[float]
    reference: list[float]


class Row(TypedDict):
    """A contender; its settings are there too, each under its own name."""

    name: str
    nanoseconds_per_step: Cost
    steps_per_second: float


class Written(TypedDict):
    """A result; what else its bench had to say is there too."""

    machine: Machine
    load_after: float
    groups: dict[str, list[Row]]
    ratios: dict[str, float]


FIGURES = ("name", "nanoseconds_per_step", "steps_per_second", "turns")


def read_result(path: Path) -> Any:
    """What a file holds, checked to be `Written`; `bench` is the file's name where it has none.

    Raises:
        ValueError: it cannot be read, or holds something else.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path} must be a file that can be read, but: {error}") from None
    except ValueError as error:
        raise ValueError(f"{path} must be JSON, but: {error}") from None
    _check(content, Written, str(path))
    return {**content, "bench": content.get("bench") or path.stem}


def settings(row: Mapping[str, Any]) -> dict[str, Any]:
    """What was measured, beside the figures."""
    return {name: value for name, value in row.items() if name not in FIGURES}


def split(settings: Sequence[Mapping[str, Any]]) -> tuple[list[str], str]:
    """Of a group's settings: the names of those that differ, and what all have in common."""
    names = dict.fromkeys(name for one in settings for name in one)
    values = {name: [one.get(name, "") for one in settings] for name in names}
    differing = [name for name in names if len(set(values[name])) > 1]
    return differing, ", ".join(f"{n} {values[n][0]}" for n in names if n not in differing)


def turns(row: Mapping[str, Any], place: str) -> Turns:
    """The single repetitions of a contender.

    Raises:
        ValueError: they were not written, or cannot be.
    """
    if "turns" not in row:
        raise ValueError(f"{place} must have every turn, which older files lack: measure anew")
    found: Turns = row["turns"]
    _check(found, Turns, place)
    numbers = [found["calls"], found["steps_in_a_call"], *found["seconds"], *found["reference"]]
    if not found["seconds"] or not all(0 < number < math.inf for number in numbers):
        raise ValueError(f"{place} must have turns that took some time, got {found!r:.60}")
    return found


def _check(content: object, model: Any, place: str) -> None:
    try:
        msgspec.convert(json.loads(json.dumps(content)), model)  # without NumPy's own floats
    except msgspec.ValidationError as error:
        raise ValueError(f"{place} is damaged: {error}") from None

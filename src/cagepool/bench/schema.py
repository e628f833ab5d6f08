"""Data model of a bench result, and its JSON file."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Annotated, Any, Self, TypeAlias

import msgspec
from msgspec import Meta, Struct

from cagepool.runs import MAX_JSON_BYTES, RunFileError, read_bytes

Setting: TypeAlias = str | bool | int | float
Settings: TypeAlias = Mapping[str, Setting]
Positive: TypeAlias = Annotated[float, Meta(gt=0)]
Count: TypeAlias = Annotated[int, Meta(ge=1)]


class Repetitions(Struct, frozen=True, kw_only=True):
    """Raw times of one contender: what a comparison of two runs needs."""

    calls: Count
    """Calls per repetition."""
    steps_per_call: Count
    """Environment steps per call."""
    warm_up_seconds: float = 0.0
    seconds: Annotated[list[Positive], Meta(min_length=1)]
    """Per repetition."""
    reference_seconds: list[Positive] = []
    """Per call of the reference workload in each repetition; empty: it was not measured."""

    @property
    def nanoseconds_per_step(self) -> list[float]:
        """Cost of one environment step in each repetition."""
        return [1e9 * seconds / (self.calls * self.steps_per_call) for seconds in self.seconds]


class Cost(Struct, frozen=True):
    """Median and quartiles of the nanoseconds per environment step."""

    median: float
    quartiles: tuple[float, float]


class Measurement(Struct, frozen=True, kw_only=True):
    """Speed of one contender."""

    name: str
    settings: dict[str, Setting]
    nanoseconds_per_step: Cost
    steps_per_second: float
    """Median throughput."""
    repetitions: Repetitions | None = None
    """None: an older file."""

    @classmethod
    def of(cls, name: str, settings: Settings, repetitions: Repetitions) -> Self:
        """Summarize the repetitions of a contender; there must be two or more."""
        costs = repetitions.nanoseconds_per_step
        low, middle, high = (round(cost, 3) for cost in quantiles(costs, n=4))
        return cls(
            name=name,
            settings=dict(settings),
            nanoseconds_per_step=Cost(middle, (low, high)),
            steps_per_second=significant(1e9 / median(costs)),
            repetitions=repetitions,
        )

    def matches(self, name: str, settings: Mapping[str, object]) -> bool:
        """Whether this contender has the name and the settings; None: without the setting."""
        return self.name == name and all(
            self.settings.get(key) == value for key, value in settings.items()
        )


Groups: TypeAlias = dict[str, list[Measurement]]


class BenchResult(Struct, frozen=True, kw_only=True):
    """Result of one bench. The contenders of a group were measured interleaved."""

    bench: str
    """Name of the bench."""
    machine: dict[str, str | int | float | None]
    """Processor, versions, commit, and the load average before the run."""
    load_after: float
    busy_elsewhere: float | None = None
    """Share of all cores that other processes and tenants used; None: unknown."""
    stolen: float | None = None
    """Share of all cores that other tenants of the hardware used."""
    facts: dict[str, Any] = {}
    """Figures of this bench that are not timings of contenders."""
    groups: Groups
    ratios: dict[str, float]
    """Ratios that documents cite, each computed within one group."""


def read_result(path: Path) -> BenchResult:
    """Read a result file.

    Raises:
        RunFileError: the file cannot be read or is not a bench result.
    """
    content = read_bytes(path, MAX_JSON_BYTES, follow_link=True)
    try:
        return msgspec.json.decode(content, type=BenchResult)
    except (ValueError, RecursionError) as error:
        raise RunFileError(f"{path} must be a result of `cagepool bench`: {error}") from None


def write_result(result: BenchResult, path: Path) -> None:
    """Write a result file."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")


def find(group: Iterable[Measurement], name: str, **settings: object) -> Measurement:
    """Return the only contender of a group with this name and these settings.

    Raises:
        ValueError: none or several match.
    """
    (found,) = (each for each in group if each.matches(name, settings))
    return found


def rates(group: Iterable[Measurement]) -> dict[str, float]:
    """Median steps per second by contender."""
    return {measurement.name: measurement.steps_per_second for measurement in group}


def split_settings(rows: Sequence[Settings]) -> tuple[list[str], str]:
    """Return the names of the settings that differ, and the others as text."""
    names = dict.fromkeys(name for row in rows for name in row)
    values = {name: [row.get(name, "") for row in rows] for name in names}
    differing = [name for name in names if len(set(values[name])) > 1]
    return differing, ", ".join(f"{n} {values[n][0]}" for n in names if n not in differing)


def significant(value: float) -> float:
    """Round to six significant digits."""
    return float(f"{value:.6g}")

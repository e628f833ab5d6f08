"""Data model of a bench result, its JSON file, and the comparison of two results."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median, quantiles
from typing import Annotated, Any, Literal, Self, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta, Struct

from cagepool.runs import MAX_JSON_BYTES, RunFileError, read_bytes
from cagepool.types import Float64s

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
    repetitions: Repetitions

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
    """Read a result file."""
    content = read_bytes(path, MAX_JSON_BYTES, follow_link=True)
    try:
        return msgspec.json.decode(content, type=BenchResult)
    except (ValueError, RecursionError) as error:
        raise RunFileError(f"{path} must be a result of `cagepool bench`: {error}") from None


def write_result(result: BenchResult, path: Path) -> None:
    """Write a result file."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")


def find(group: Iterable[Measurement], name: str, **settings: object) -> Measurement:
    """Return the only contender of a group with this name and these settings."""
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


MIN_CHANGE = 0.05  # smaller changes may come from the memory layout of the process
ERROR_RATE = 0.01  # false positives per contender, at most
FAMILY_ERROR_RATE = 0.05  # Bonferroni over all contenders
BUSY = 0.1  # load by other processes above which it may explain a change
Verdict: TypeAlias = Literal["slower", "faster", "no change"]


@dataclass(frozen=True, kw_only=True)
class Change:
    """Change of one contender."""

    group: str
    name: str
    settings: Mapping[str, Setting]
    before_ns: float
    after_ns: float
    change: float
    """Relative change of the cost, in units of the reference: 0.1 is 10 % slower."""
    noise: float
    """Smaller changes cannot be distinguished from noise."""

    @property
    def verdict(self) -> Verdict:
        """Whether the change is more than noise."""
        if abs(math.log1p(self.change)) <= math.log1p(self.noise):
            return "no change"
        return "slower" if self.change > 0 else "faster"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Differences between two results of one bench."""

    changes: list[Change]
    removed: list[str]
    """Contenders of the old result only."""
    added: list[str]
    """Contenders of the new result only."""
    machine: dict[str, tuple[object, object]]
    """Hardware and versions that differ, old and new."""


def compare_results(before: BenchResult, after: BenchResult) -> Comparison:
    """Compare two results of one bench."""
    if before.bench != after.bench:
        names = f"{before.bench} and {after.bench}"
        raise ValueError(f"both results must be of the same bench, got {names}")
    old, new = dict(_contenders(before)), dict(_contenders(after))
    common = [key for key in old if key in new]
    error_rate = min(ERROR_RATE, FAMILY_ERROR_RATE / max(1, len(common)))
    min_noise = max(_noise_of_load(before), _noise_of_load(after))
    return Comparison(
        changes=[_change(key[0], old[key], new[key], error_rate, min_noise) for key in common],
        removed=[_label(key) for key in old if key not in new],
        added=[_label(key) for key in new if key not in old],
        machine=_machine_differences(before.machine, after.machine),
    )


def log_shift(
    before: Sequence[float], after: Sequence[float], error_rate: float = ERROR_RATE
) -> tuple[float, float]:
    """Return the Hodges-Lehmann shift of the logarithms, and its uncertainty.

    The uncertainty is the larger half of the confidence interval that the exact Mann-Whitney test
    gives; it is infinite if the samples are too small for the error rate of one contender.
    """
    pairs: Float64s = np.subtract.outer(np.log(after), np.log(before))
    differences = np.sort(pairs.ravel())
    estimate = float(np.median(differences))
    trimmed = _trimmed_pairs(len(before), len(after), error_rate)
    if trimmed == 0:
        return estimate, math.inf
    low, high = float(differences[trimmed - 1]), float(differences[-trimmed])
    return estimate, max(high - estimate, estimate - low)


@cache
def _trimmed_pairs(first: int, second: int, error_rate: float) -> int:
    """Number of pairwise differences outside the confidence interval, at each end.

    Samples too small for the corrected error rate keep all differences inside, if they are large
    enough for the error rate of one contender.
    """
    statistics = range(first * second // 2 + 1)
    trimmed = bisect_right(statistics, error_rate, key=lambda u: _p_value(first, second, u))
    return max(trimmed, int(_p_value(first, second, 0) <= ERROR_RATE))


def _p_value(first: int, second: int, u: int) -> float:
    """p-value of two samples of these sizes whose Mann-Whitney statistic is `u`."""
    from scipy.stats import mannwhitneyu  # noqa: PLC0415 - readers of results need no SciPy

    above_all, above_some = divmod(u, second)
    sample = [second + 1.0] * above_all + [above_some - 0.5] + [-1.0] * (first - above_all - 1)
    jitter = np.arange(first) * 1e-6  # ties would need the asymptotic test
    test = mannwhitneyu(sample[:first] + jitter, np.arange(second), method="exact")
    return float(test.pvalue)


def _noise_of_load(result: BenchResult) -> float:
    """Change that the load by other processes can explain."""
    share = min(result.busy_elsewhere or 0.0, 0.99)
    return share / (1 - share) if share > BUSY else MIN_CHANGE


def _change(
    group: str, before: Measurement, after: Measurement, error_rate: float, min_noise: float
) -> Change:
    old, new = _Costs.of(before.repetitions), _Costs.of(after.repetitions)
    is_relative = bool(old.relative and new.relative)
    samples = (old.relative, new.relative) if is_relative else (old.raw, new.raw)
    shift, uncertainty = log_shift(*samples, error_rate)
    return Change(
        group=group,
        name=before.name,
        settings=before.settings,
        before_ns=median(old.raw),
        after_ns=median(new.raw),
        change=math.expm1(shift),
        noise=max(min_noise, math.expm1(min(uncertainty, 10.0))),
    )


@dataclass(frozen=True)
class _Costs:
    raw: list[float]  # nanoseconds per step, per repetition
    relative: list[float]  # divided by the reference; empty: the reference was not measured

    @classmethod
    def of(cls, repetitions: Repetitions) -> "_Costs":
        raw, reference = repetitions.nanoseconds_per_step, repetitions.reference_seconds
        if len(reference) != len(raw):
            return cls(raw, [])
        return cls(raw, [cost / unit for cost, unit in zip(raw, reference, strict=True)])


_Key: TypeAlias = tuple[str, str, tuple[tuple[str, str], ...]]


def _contenders(result: BenchResult) -> Iterator[tuple[_Key, Measurement]]:
    for group, measurements in result.groups.items():
        for measurement in measurements:
            settings = tuple(
                (name, str(value)) for name, value in sorted(measurement.settings.items())
            )
            yield (group, measurement.name, settings), measurement


def _label(key: _Key) -> str:
    group, name, settings = key
    return ", ".join((f"{group}: {name}", *(f"{setting} {value}" for setting, value in settings)))


def _machine_differences(
    before: Mapping[str, object], after: Mapping[str, object]
) -> dict[str, tuple[object, object]]:
    """Differences that may change the speed; load is compared separately."""
    names = [name for name in {**before, **after} if name not in ("commit", "load", "cagepool")]
    pairs = {name: (before.get(name), after.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

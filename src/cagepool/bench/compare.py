"""Comparison of two runs of a bench: which contenders changed by more than noise.

Two runs happen at different times on a machine of varying speed. Costs are therefore divided by
those of the reference workload, which was measured interleaved with the contenders.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Literal, TypeAlias

import numpy as np
from scipy.stats import mannwhitneyu

from cagepool.bench.schema import BenchResult, Measurement, Setting
from cagepool.types import Float64s

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
    """Compare two results of one bench.

    Raises:
        ValueError: the results are of different benches, or lack single repetitions.
    """
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
    old, new = _Costs.of(group, before), _Costs.of(group, after)
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
    def of(cls, group: str, measurement: Measurement) -> "_Costs":
        repetitions = measurement.repetitions
        if repetitions is None:
            raise ValueError(
                f"{measurement.name} of {group} must have its repetitions, which older files lack: "
                "measure again"
            )
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

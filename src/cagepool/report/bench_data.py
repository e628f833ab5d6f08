"""Content of the benchmark page: groups of contenders, sweeps over sizes, memory and ratios."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cagepool.bench import BENCHES, schema
from cagepool.bench.schema import BenchResult, split_settings

MIN_SWEEP_SIZES = 3  # fewer sizes are shown as separate groups
BUSY_WARNING_SHARE = 0.1  # CPU share of other processes above which the page warns


@dataclass(frozen=True)
class ContenderResult:
    """Nanoseconds per step of one contender: lower quartile, median, upper quartile."""

    name: str
    settings: list[str]  # one value per column of the group
    nanoseconds: tuple[float, float, float]

    @property
    def rates(self) -> tuple[float, float, float]:
        """Steps per second: lower quartile, median, upper quartile."""
        low, median, high = (1e9 / cost for cost in reversed(self.nanoseconds))
        return low, median, high


@dataclass(frozen=True)
class Group:
    """Contenders that were measured interleaved."""

    title: str
    common: str  # settings that all contenders share
    columns: list[str]  # settings that differ
    contenders: list[ContenderResult]

    def label(self, contender: ContenderResult) -> str:
        """Name of a contender, followed by its settings where the name is not unique."""
        if len({each.name for each in self.contenders}) == len(self.contenders):
            return contender.name
        values = zip(self.columns, contender.settings, strict=True)
        return ", ".join((contender.name, *(f"{name} {value}" for name, value in values if value)))


@dataclass(frozen=True)
class Sweep:
    """Groups that differ in size only, as one curve per contender."""

    title: str
    curves: dict[str, dict[int, ContenderResult]]  # by contender, then by size
    groups: list[Group]
    recommendations: list[str]

    @property
    def efficiency(self) -> dict[str, dict[int, float]]:
        """Rate at each size divided by size times the rate at size 1, per contender."""
        return {
            name: {
                size: contender.rates[1] / (size * curve[1].rates[1])
                for size, contender in curve.items()
            }
            for name, curve in self.curves.items()
            if 1 in curve
        }


@dataclass(frozen=True)
class BenchData:
    """Result of one bench as the page shows it."""

    name: str
    about: str
    machine: dict[str, str]
    system_load: str
    groups: list[Group]  # without those of the sweeps
    sweeps: list[Sweep]
    ratios: dict[str, float]
    memory: dict[str, list[dict[str, int]]] = field(default_factory=dict)


def to_bench_data(result: BenchResult) -> BenchData:
    """Page content of one result."""
    groups = [_to_group(title, rows) for title, rows in result.groups.items()]
    sweeps = _find_sweeps(groups, result.facts.get("scaling", {}))
    swept = [group for sweep in sweeps for group in sweep.groups]
    return BenchData(
        name=result.bench,
        about=next((entry.summary for name, entry in BENCHES.items() if name == result.bench), ""),
        machine={key: str(value) for key, value in result.machine.items()},
        system_load=_describe_load(result),
        groups=[group for group in groups if group not in swept],
        sweeps=sweeps,
        ratios=result.ratios,
        memory=result.facts.get("memory", {}),
    )


def _to_group(title: str, rows: Sequence[schema.Measurement]) -> Group:
    columns, common = split_settings([row.settings for row in rows])
    return Group(title, common, columns, [_to_contender_result(row, columns) for row in rows])


def _to_contender_result(row: schema.Measurement, columns: Sequence[str]) -> ContenderResult:
    cost = row.nanoseconds_per_step
    low, high = cost.quartiles
    values = [str(row.settings.get(column, "")) for column in columns]
    return ContenderResult(row.name, values, (low, cost.median, high))


def _find_sweeps(groups: Sequence[Group], scaling: Mapping[str, Any]) -> list[Sweep]:
    """Groups form a sweep if their titles differ only in a number at the end."""
    by_title: dict[str, dict[int, Group]] = {}
    for group in groups:
        if match := re.fullmatch(r"(.*) (\d+)", group.title):
            by_title.setdefault(match[1], {})[int(match[2])] = group
    return [
        _to_sweep(title, sizes, scaling.get(title, {}))
        for title, sizes in by_title.items()
        if len(sizes) >= MIN_SWEEP_SIZES
    ]


def _to_sweep(title: str, sizes: Mapping[int, Group], scaling: Mapping[str, Any]) -> Sweep:
    curves: dict[str, dict[int, ContenderResult]] = {}
    for size, group in sorted(sizes.items()):
        for contender in group.contenders:
            curves.setdefault(contender.name, {})[size] = contender
    return Sweep(title, curves, list(sizes.values()), _recommendations(scaling))


def _recommendations(scaling: Mapping[str, Any]) -> list[str]:
    """Sentences on the fastest back end per range of sizes and on crossings of two curves."""
    fastest = ", ".join(
        f"{entry['backend']} from {entry['first']:,} to {entry['last']:,}"
        for entry in scaling.get("recommendation", [])
    )
    crossings = [
        f"{entry['faster']} overtakes {entry['overtaken']} at about {entry['environments']:,.0f}"
        for entry in scaling.get("crossings", [])
    ]
    return [f"Fastest: {fastest}.", *crossings] if fastest else crossings


def _describe_load(result: BenchResult) -> str:
    share = result.busy_elsewhere
    if share is None:
        return ""
    warning = ": take the figures with care" if share > BUSY_WARNING_SHARE else ""
    return f"other processes used {share:.0%} of the CPU meanwhile{warning}"

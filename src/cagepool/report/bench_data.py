"""What a page tells of the results of benches: groups, sweeps over sizes, memory and ratios."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cagepool.bench.registry import BENCHES
from cagepool.bench.schema import settings, split

FEW_SIZES = 3  # as many make a curve
WORTH_TELLING = 0.1  # share of the machine that others took


@dataclass(frozen=True)
class Bar:
    """A contender: nanoseconds a step and steps a second, lower quartile, median, upper."""

    name: str
    settings: list[str]
    nanoseconds: tuple[float, float, float]

    @property
    def rates(self) -> tuple[float, float, float]:
        """Steps a second."""
        low, middle, high = (1e9 / cost for cost in reversed(self.nanoseconds))
        return low, middle, high


@dataclass(frozen=True)
class Group:
    """Contenders that took turns."""

    title: str
    common: str
    columns: list[str]
    bars: list[Bar]

    def label(self, bar: Bar) -> str:
        """Its name, and what sets it apart where the name does not."""
        if len({one.name for one in self.bars}) == len(self.bars):
            return bar.name
        shown = zip(self.columns, bar.settings, strict=True)
        return ", ".join((bar.name, *(f"{name} {value}" for name, value in shown if value)))


@dataclass(frozen=True)
class Sweep:
    """Groups that differ in size only, as curves by contender and size."""

    title: str
    curves: dict[str, dict[int, Bar]]
    groups: list[Group]
    advice: list[str]

    @property
    def efficiency(self) -> dict[str, dict[int, float]]:
        """The rate at each size, of what so many times the rate of a single one would be."""
        found = {}
        for name, curve in self.curves.items():
            if 1 in curve:
                one = curve[1].rates[1]
                found[name] = {size: bar.rates[1] / (size * one) for size, bar in curve.items()}
        return found


@dataclass(frozen=True)
class Benched:
    """The result of one bench."""

    name: str
    about: str
    machine: dict[str, str]
    busy: str
    groups: list[Group]
    sweeps: list[Sweep]
    ratios: dict[str, float]
    memory: dict[str, list[dict[str, int]]] = field(default_factory=dict)


def benched(result: Mapping[str, Any]) -> Benched:
    """Of one result, as `read_result` gives it."""
    groups = [_group(title, rows) for title, rows in result["groups"].items()]
    sweeps = _sweeps(groups, result.get("scaling", {}))
    swept = [group for sweep in sweeps for group in sweep.groups]
    name = result["bench"]
    return Benched(
        name=name,
        about=next((entry.about for known, entry in BENCHES.items() if known == name), ""),
        machine={key: str(value) for key, value in result["machine"].items()},
        busy=_busy(result),
        groups=[group for group in groups if group not in swept],
        sweeps=sweeps,
        ratios=result["ratios"],
        memory=result.get("memory", {}),
    )


def _group(title: str, rows: Sequence[Mapping[str, Any]]) -> Group:
    columns, common = split([settings(row) for row in rows])
    return Group(title, common, columns, [_bar(row, columns) for row in rows])


def _bar(row: Mapping[str, Any], columns: Sequence[str]) -> Bar:
    cost = row["nanoseconds_per_step"]
    low, high = cost["quartiles"]
    shown = [str(row.get(column, "")) for column in columns]
    return Bar(row["name"], shown, (low, cost["median"], high))


def _sweeps(groups: Sequence[Group], scaling: Mapping[str, Any]) -> list[Sweep]:
    """Groups are one sweep where their titles differ in a number at the end only."""
    kinds: dict[str, dict[int, Group]] = {}
    for group in groups:
        if found := re.fullmatch(r"(.*) (\d+)", group.title):
            kinds.setdefault(found[1], {})[int(found[2])] = group
    return [
        _sweep(kind, sizes, scaling.get(kind, {}))
        for kind, sizes in kinds.items()
        if len(sizes) >= FEW_SIZES
    ]


def _sweep(kind: str, sizes: Mapping[int, Group], scaling: Mapping[str, Any]) -> Sweep:
    curves: dict[str, dict[int, Bar]] = {}
    for size, group in sorted(sizes.items()):
        for bar in group.bars:
            curves.setdefault(bar.name, {})[size] = bar
    return Sweep(kind, curves, list(sizes.values()), _advice(scaling))


def _advice(scaling: Mapping[str, Any]) -> list[str]:
    """What the bench itself recommends, in words."""
    best = [
        f"{one['backend']} from {one['first']:,} to {one['last']:,}"
        for one in scaling.get("recommendation", [])
    ]
    crossings = [
        f"{one['faster']} overtakes {one['overtaken']} at about {one['environments']:,.0f}"
        for one in scaling.get("crossings", [])
    ]
    return [*(f"Fastest: {text}." for text in [", ".join(best)] if text), *crossings]


def _busy(result: Mapping[str, Any]) -> str:
    share = result.get("busy_elsewhere")
    if share is None:
        return ""
    warning = ": take figures with care" if share > WORTH_TELLING else ""
    return f"others kept {share:.0%} of it busy meanwhile{warning}"

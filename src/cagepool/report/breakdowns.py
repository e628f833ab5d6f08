"""Breakdowns of a run: reward lost by cause, training time by part, actions by host."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cagepool.report.run_data import RunData
from cagepool.report.tables import last_finite
from cagepool.runs.schema import ActionCounts, EvaluationFile

CAUSES = {
    "user_hosts": "User hosts",
    "servers": "Servers",
    "impact": "Impact",
    "restores": "Restores",
    "other": "Other hosts",
}
TIME_PARTS = {"wait": "Collecting rollouts", "update": "Updating the policy", "other": "Other"}
NEGLIGIBLE_SECONDS = 0.05


@dataclass(frozen=True)
class Segment:
    """One segment of a stacked bar."""

    kind: str  # suffix of the CSS variable of its color
    title: str
    amount: float
    percent: float  # of the longest bar


@dataclass(frozen=True)
class StackedBar:
    """A stacked bar."""

    title: str
    segments: list[Segment]

    @property
    def total(self) -> float:
        """Sum of all segments."""
        return sum(segment.amount for segment in self.segments)


@dataclass(frozen=True)
class HeatCell:
    """Mean uses of an action per game, and the intensity of its color."""

    uses: float
    heat: int  # percent


@dataclass(frozen=True)
class HeatMap:
    """Uses of each kind of action on each host, against one red."""

    red: str
    hosts: list[str]
    rows: dict[str, list[HeatCell]]  # by kind of action


@dataclass(frozen=True)
class HeatMaps:
    """One heat map per red; kinds of action that are unused against every red are left out."""

    maps: list[HeatMap]
    unused: list[str]


def loss_bars(runs: Sequence[RunData]) -> dict[str, list[StackedBar]]:
    """Mean loss per game by cause: one list per evaluated run, one bar per red."""
    evaluations = {run.name: run.evaluation for run in runs if run.evaluation}
    totals = [
        sum(causes.values())
        for evaluation in evaluations.values()
        for causes in evaluation.loss.values()
    ]
    longest = max(totals, default=0.0)
    return {
        name: [
            _stacked_bar(red, CAUSES, causes, longest) for red, causes in evaluation.loss.items()
        ]
        for name, evaluation in evaluations.items()
    }


def time_bars(runs: Sequence[RunData]) -> list[StackedBar]:
    """Seconds of training by part, one bar per run."""
    seconds = [_seconds_by_part(run) for run in runs]
    longest = max((sum(parts.values()) for parts in seconds), default=0.0)
    return [
        _stacked_bar(run.name, TIME_PARTS, parts, longest)
        for run, parts in zip(runs, seconds, strict=True)
    ]


def overlapped_seconds(run: RunData) -> float:
    """Seconds of collection that overlapped with updates, as `--async` does it."""
    collect, wait = (_column_sum(run, f"{part}_seconds") for part in ("collect", "wait"))
    return collect - wait if collect - wait > NEGLIGIBLE_SECONDS else 0.0


def heat_maps(evaluation: EvaluationFile) -> HeatMaps:
    """Mean uses of each kind of action per host, on one scale for all reds."""
    by_red = evaluation.actions
    rows = [row for uses in by_red.values() for row in _rows(uses)]
    used = {kind for kind, counts in rows if any(counts)}
    most = max((max(counts) for _, counts in rows), default=0.0)
    kinds = dict.fromkeys(kind for kind, _ in rows)
    return HeatMaps(
        maps=[_heat_map(red, uses, used, most) for red, uses in by_red.items()],
        unused=[kind for kind in kinds if kind not in used],
    )


def _stacked_bar(
    title: str, titles: dict[str, str], amounts: dict[str, float], longest: float
) -> StackedBar:
    segments = [
        Segment(kind, titles.get(kind, kind), amount, 100 * amount / longest if longest else 0.0)
        for kind, amount in amounts.items()
    ]
    return StackedBar(title, segments)


def _seconds_by_part(run: RunData) -> dict[str, float]:
    """Seconds by part; time that no part accounts for counts as other."""
    sums = {part: _column_sum(run, f"{part}_seconds") for part in TIME_PARTS}
    unaccounted = last_finite(run.metrics.get("seconds", [])) - sum(sums.values())
    if unaccounted > NEGLIGIBLE_SECONDS:
        sums["other"] += unaccounted
    return sums


def _column_sum(run: RunData, column: str) -> float:
    return sum(value for value in run.metrics.get(column, []) if not math.isnan(value))


def _heat_map(red: str, uses: ActionCounts, used: set[str], most: float) -> HeatMap:
    # The square root keeps rare actions visible beside the most frequent one.
    rows = {
        kind: [HeatCell(count, round(100 * (count / most) ** 0.5)) for count in counts]
        for kind, counts in _rows(uses)
        if kind in used
    }
    return HeatMap(red, uses.hosts, rows)


def _rows(uses: ActionCounts) -> "zip[tuple[str, list[float]]]":
    return zip(uses.kinds, uses.counts, strict=True)

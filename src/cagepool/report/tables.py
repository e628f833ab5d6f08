"""Tables of the run page: scores, summaries, settings, and what time and reward were spent on."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cagepool.report.run_data import RunData
from cagepool.report.svg import series_name
from cagepool.runs import flat_settings
from cagepool.runs.schema import ActionCounts, EvaluationFile, PublishedResult
from cagepool.runs.study_schema import EditionResults

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
class Estimate:
    """A mean and its standard error; published results have no error."""

    mean: float
    standard_error: float | None = None
    best: bool = False  # is the best of its column


@dataclass(frozen=True)
class ScoreRow:
    """Scores of one defender."""

    name: str
    note: str
    source: str
    color: str | None  # none: a published result
    cells: list[Estimate | None]
    total: Estimate | None


@dataclass(frozen=True)
class EditionTable:
    """Scores in one edition of the game; editions are not comparable."""

    edition: str
    columns: dict[str, list[int]]  # episode lengths by red
    rows: list[ScoreRow]


@dataclass(frozen=True)
class RunFigures:
    """Key figures of one run."""

    name: str
    color: str
    edition: str
    red: str
    total: Estimate | None
    evaluation: Estimate | None  # periodic evaluation of the best policy
    averages_lengths: bool  # see RunData
    episodes: int
    seconds: float
    steps_per_second: float


@dataclass(frozen=True)
class SettingRow:
    """One setting with its value per run; none: the run has no such setting."""

    name: str
    values: list[str | None]

    @property
    def differs(self) -> bool:
        """Whether the values of the runs differ."""
        return len({*self.values}) > 1


def score_tables(runs: Sequence[RunData]) -> list[EditionTable]:
    """Scores of runs and published results, best first, one table per edition."""
    evaluated = [(number, run, run.evaluation) for number, run in enumerate(runs) if run.evaluation]
    editions = dict.fromkeys(evaluation.edition for _, _, evaluation in evaluated)
    return [
        _score_table(edition, [entry for entry in evaluated if entry[2].edition == edition])
        for edition in editions
    ]


def run_figures(run: RunData, number: int) -> RunFigures:
    """Key figures of the run with that number on the page."""
    seconds, steps = (last_finite(run.metrics.get(name, [])) for name in ("seconds", "steps"))
    total = run.evaluation and run.evaluation.total
    return RunFigures(
        name=run.name,
        color=series_name(number),
        edition=run.edition,
        red=run.red_agent,
        total=Estimate(total.mean, total.standard_error) if total else None,
        evaluation=_best_periodic_evaluation(run),
        averages_lengths=run.averages_lengths,
        episodes=int(last_finite(run.metrics.get("episodes", []))),
        seconds=seconds,
        steps_per_second=steps / seconds if seconds else 0.0,
    )


def settings_table(runs: Sequence[RunData]) -> list[SettingRow]:
    """Settings of all runs by their full names, in the order of first appearance."""
    settings = [flat_settings(run.settings) for run in runs]
    names = dict.fromkeys(name for of_run in settings for name in of_run)
    return [
        SettingRow(
            name, [format_value(of_run[name]) if name in of_run else None for of_run in settings]
        )
        for name in names
    ]


def format_value(value: Any) -> str:
    """Text of a setting's value."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return ", ".join(format_value(item) for item in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value is None else json.dumps(value)


def last_finite(values: Sequence[float]) -> float:
    """The last finite value; 0 if there is none."""
    return next((value for value in reversed(values) if math.isfinite(value)), 0.0)


def _best_periodic_evaluation(run: RunData) -> Estimate | None:
    """The evaluation of the best policy, which has the highest score."""
    columns = run.evaluations
    rows = zip(columns["score"], columns["mean"], columns["error"], strict=True)
    scored = [row for row in rows if math.isfinite(row[0])]
    return Estimate(*max(scored)[1:]) if scored else None


def _score_table(
    edition: str, entries: Sequence[tuple[int, RunData, EvaluationFile]]
) -> EditionTable:
    columns = _columns(evaluation for _, _, evaluation in entries)
    places = [(red, length) for red, lengths in columns.items() for length in lengths]
    rows = [_run_row(number, run, places) for number, run, _ in entries]
    published = [result for _, _, evaluation in entries for result in evaluation.published]
    distinct = {(result.name, result.method): result for result in published}
    rows += [_published_row(result, places) for result in distinct.values()]
    rows.sort(key=lambda row: row.total.mean if row.total else -math.inf, reverse=True)
    return EditionTable(edition, columns, _mark_best_of_columns(rows))


def _columns(evaluations: Iterable[EvaluationFile]) -> dict[str, list[int]]:
    lengths: dict[str, set[int]] = {}
    for evaluation in evaluations:
        for cell in evaluation.scores:
            lengths.setdefault(cell.red, set()).add(cell.length)
    return {red: sorted(values) for red, values in lengths.items()}


def _run_row(number: int, run: RunData, places: Sequence[tuple[str, int]]) -> ScoreRow:
    evaluation = run.evaluation
    assert evaluation, "only evaluated runs have a row"
    cells = {
        (cell.red, cell.length): Estimate(cell.mean, cell.standard_error)
        for cell in evaluation.scores
    }
    total = evaluation.total
    where = "in CybORG" if evaluation.env == "cyborg" else "native"
    return ScoreRow(
        name=run.name,
        note=f"{evaluation.episodes:,} episodes per cell, {where}",
        source=str(run.path),
        color=series_name(number),
        cells=[cells.get(place) for place in places],
        total=Estimate(total.mean, total.standard_error) if total else None,
    )


def _published_row(result: PublishedResult, places: Sequence[tuple[str, int]]) -> ScoreRow:
    means = [result.cells.get(red, {}).get(length) for red, length in places]
    return ScoreRow(
        name=result.name,
        note=result.method,
        source=result.source,
        color=None,
        cells=[None if mean is None else Estimate(mean) for mean in means],
        total=Estimate(result.total),
    )


def _mark_best_of_columns(rows: list[ScoreRow]) -> list[ScoreRow]:
    """Mark the best estimate of every column in which scores differ."""
    columns = list(zip(*([*row.cells, row.total] for row in rows), strict=True))
    best = [_best_mean([cell.mean for cell in column if cell]) for column in columns]
    return [
        replace(
            row,
            cells=list(map(_mark_best, row.cells, best)),
            total=_mark_best(row.total, best[-1]),
        )
        for row in rows
    ]


def _best_mean(means: Sequence[float]) -> float | None:
    """Highest mean of a column; none if all are equal."""
    return max(means) if len({*means}) > 1 else None


def _mark_best(estimate: Estimate | None, best: float | None) -> Estimate | None:
    return estimate and replace(estimate, best=estimate.mean == best)


# Loss by cause, training time by part, actions by host


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


def study_loss_bars(edition: EditionResults) -> list[StackedBar]:
    """Mean loss per game by cause, summed over reds: one bar per setting of a study."""
    losses = {
        setting.name: {
            cause: sum(by_cause.get(cause, 0.0) for by_cause in setting.loss.values())
            for cause in CAUSES
        }
        for setting in edition.settings
    }
    longest = max((sum(causes.values()) for causes in losses.values()), default=0.0)
    return [_stacked_bar(name, CAUSES, causes, longest) for name, causes in losses.items()]


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

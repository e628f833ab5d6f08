"""Tables of the run page: scores, run summaries and settings."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cagepool.report.run_data import RunData
from cagepool.report.svg import series_name
from cagepool.runs import flat_settings
from cagepool.runs.schema import EvaluationFile, PublishedResult


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
    evaluation: Estimate | None  # best periodic evaluation of the training
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
    rows = zip(*(run.checks.get(name, []) for name in ("score", "standard_error")), strict=True)
    scored = [(score, error) for score, error in rows if math.isfinite(score)]
    return Estimate(*max(scored)) if scored else None


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

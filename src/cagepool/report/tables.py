"""Tables of the run page: scores, summaries, settings, and what time and reward were spent on."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cagepool.report.data import RunData
from cagepool.report.svg import series_name
from cagepool.runs import flat_settings
from cagepool.runs.schema import ActionCounts, EvaluationFile, PublishedResult, Scores
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
    color: str | None  # none: not a run of the page
    cells: list[Estimate | None]
    total: Estimate | None


@dataclass(frozen=True)
class ScenarioScores:
    """Total on one of several scenarios, by defender of a table."""

    scenario: str
    totals: list[Estimate | None]


@dataclass(frozen=True)
class EvaluationTable:
    """Scores on the same scenarios in one edition of the game; other scores are not comparable."""

    title: str
    columns: dict[str, list[int]]  # episode lengths by red
    rows: list[ScoreRow]
    defenders: list[str]  # columns of `scenarios`
    scenarios: list[ScenarioScores]  # none if there is one scenario only


@dataclass(frozen=True)
class RunFigures:
    """Key figures of one run."""

    name: str
    color: str
    edition: str
    red: str
    total: Estimate | None
    total_name: str
    evaluation: Estimate | None  # periodic evaluation of the best policy
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


def score_tables(runs: Sequence[RunData]) -> list[EvaluationTable]:
    """Scores of runs and of what they are compared with, best first."""
    groups: dict[str, list[_Entry]] = {}
    for number, run in enumerate(runs):
        for evaluation in run.all_evaluations:
            entry = _Entry(number, run, evaluation)
            groups.setdefault(_title(evaluation), []).append(entry)
    return [_score_table(title, entries) for title, entries in groups.items()]


def run_figures(run: RunData, number: int) -> RunFigures:
    """Key figures of the run with that number on the page."""
    seconds, steps = (last_finite(run.metrics.get(name, [])) for name in ("seconds", "steps"))
    evaluation = run.evaluation
    is_official = evaluation is None or evaluation.official
    total = evaluation and evaluation.total
    return RunFigures(
        name=run.name,
        color=series_name(number),
        edition=run.edition,
        red=run.red_agent,
        total=Estimate(total.mean, total.standard_error) if total else None,
        total_name="Official total of nine cells" if is_official else "Total on its scenarios",
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
    """The evaluation of the best policy, which has the highest score."""
    names = ("score", "return_mean", "return_error")
    rows = zip(*(run.evaluations.get(name, []) for name in names), strict=True)
    scored = [row for row in rows if math.isfinite(row[0])]
    return Estimate(*max(scored)[1:]) if scored else None


@dataclass(frozen=True)
class _Entry:
    """One evaluation of a run."""

    number: int  # of the run on the page
    run: RunData
    evaluation: EvaluationFile


def _title(evaluation: EvaluationFile) -> str:
    count = len(evaluation.scenarios)
    what = evaluation.scenario if count == 1 else f"{evaluation.scenario} ({count} scenarios)"
    return f"{'CAGE-2' if evaluation.official else what}, edition {evaluation.edition}"


def _score_table(title: str, entries: Sequence[_Entry]) -> EvaluationTable:
    evaluations = [entry.evaluation for entry in entries]
    columns = _columns(evaluations)
    places = [(red, length) for red, lengths in columns.items() for length in lengths]
    rows = [_run_row(entry, places) for entry in entries]
    baselines = {row.defender: row for evaluation in evaluations for row in evaluation.baselines}
    rows += [
        _scores_row(row.defender, "scripted defender", row, places) for row in baselines.values()
    ]
    published = [result for evaluation in evaluations for result in evaluation.published]
    distinct = {(result.name, result.method): result for result in published}
    rows += [_published_row(result, places) for result in distinct.values()]
    rows.sort(key=lambda row: row.total.mean if row.total else -math.inf, reverse=True)
    by_name: dict[str, Scores] = {entry.run.name: entry.evaluation for entry in entries}
    return EvaluationTable(
        title=title,
        columns=columns,
        rows=_mark_best_of_columns(rows),
        defenders=[*by_name, *baselines],
        scenarios=_by_scenario([*by_name.values(), *baselines.values()]),
    )


def _by_scenario(defenders: Sequence[Scores]) -> list[ScenarioScores]:
    """Totals on each scenario; none if there is one only."""
    names = [scenario.name for scenario in defenders[0].scenarios]
    if len(names) == 1:
        return []
    totals = [
        {one.name: Estimate(one.mean, one.standard_error) for one in scores.scenarios}
        for scores in defenders
    ]
    return [ScenarioScores(name, [of.get(name) for of in totals]) for name in names]


def _columns(evaluations: Iterable[EvaluationFile]) -> dict[str, list[int]]:
    lengths: dict[str, set[int]] = {}
    for evaluation in evaluations:
        for cell in evaluation.scores:
            lengths.setdefault(cell.red, set()).add(cell.length)
    return {red: sorted(values) for red, values in lengths.items()}


def _run_row(entry: _Entry, places: Sequence[tuple[str, int]]) -> ScoreRow:
    evaluation = entry.evaluation
    where = "in CybORG" if evaluation.env == "cyborg" else "native"
    per = "cell" if len(evaluation.scenarios) == 1 else "scenario and cell"
    note = f"{evaluation.episodes:,} episodes per {per}, {where}"
    if evaluation.checkpoint and evaluation.checkpoint.startswith("last"):
        note += ", last policy"
    if evaluation.gap is not None:
        note += f"; gap to its training scenarios {evaluation.gap:+.2f}"
    row = _scores_row(entry.run.name, note.replace("-", "\N{MINUS SIGN}"), evaluation, places)
    return replace(row, source=str(entry.run.path), color=series_name(entry.number))


def _scores_row(
    name: str, note: str, scores: Scores, places: Sequence[tuple[str, int]]
) -> ScoreRow:
    cells = {
        (cell.red, cell.length): Estimate(cell.mean, cell.standard_error) for cell in scores.scores
    }
    return ScoreRow(
        name=name,
        note=note,
        source=note,
        color=None,
        cells=[cells.get(place) for place in places],
        total=Estimate(scores.total.mean, scores.total.standard_error),
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
    losses = {run.name: run.evaluation.loss for run in runs if run.evaluation}
    longest = max((sum(part.values()) for of in losses.values() for part in of.values()), default=0)
    return {name: _stacked_bars(of, CAUSES, longest) for name, of in losses.items()}


def study_loss_bars(edition: EditionResults) -> list[StackedBar]:
    """Mean loss per game by cause, summed over reds: one bar per setting of a study."""
    losses = {
        setting.name: {
            cause: sum(by_cause.get(cause, 0.0) for by_cause in setting.loss.values())
            for cause in CAUSES
        }
        for setting in edition.settings
    }
    return _stacked_bars(losses, CAUSES)


def time_bars(runs: Sequence[RunData]) -> list[StackedBar]:
    """Seconds of training by part, one bar per run."""
    return _stacked_bars({run.name: _seconds_by_part(run) for run in runs}, TIME_PARTS)


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


def _stacked_bars(
    bars: dict[str, dict[str, float]], titles: dict[str, str], longest: float | None = None
) -> list[StackedBar]:
    """One bar per title of `bars`, on the scale of the longest."""
    if longest is None:
        longest = max((sum(parts.values()) for parts in bars.values()), default=0.0)
    scale = 100 / longest if longest else 0.0
    return [
        StackedBar(
            title,
            [Segment(kind, titles.get(kind, kind), n, scale * n) for kind, n in parts.items()],
        )
        for title, parts in bars.items()
    ]


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

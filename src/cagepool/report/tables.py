"""Scores, settings and the overview, as rows that the page only has to lay out."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cagepool.report.colours import series
from cagepool.report.run_data import Evaluation, Folder, Published


@dataclass(frozen=True)
class Figure:
    """A mean and, where it was measured here, its standard error."""

    mean: float
    standard_error: float | None = None
    best: bool = False  # of its column


@dataclass(frozen=True)
class ScoreRow:
    """A defender's line in a table of scores."""

    name: str
    note: str
    source: str
    colour: str | None  # none: a published result
    cells: list[Figure | None]
    total: Figure | None


@dataclass(frozen=True)
class ScoreTable:
    """All scores of one edition; those of different editions must not be compared."""

    edition: str
    columns: dict[str, list[int]]  # red: lengths
    rows: list[ScoreRow]


@dataclass(frozen=True)
class Overview:
    """What a run came to, in a line."""

    name: str
    colour: str
    edition: str
    red: str
    total: Figure | None
    check: Figure | None  # the best one on other seeds
    episodes: int
    seconds: float
    steps_per_second: float


@dataclass(frozen=True)
class Setting:
    """A setting and its value in each run; none: the run does not know it."""

    name: str
    values: list[str | None]

    @property
    def differs(self) -> bool:
        """Whether the runs disagree."""
        return len({*self.values}) > 1


def score_tables(folders: Sequence[Folder]) -> list[ScoreTable]:
    """Scores of the runs beside the published ones, best first, a table for each edition."""
    evaluated = [(number, f, f.evaluation) for number, f in enumerate(folders) if f.evaluation]
    editions = dict.fromkeys(evaluation["edition"] for _, _, evaluation in evaluated)
    return [
        _score_table(edition, [entry for entry in evaluated if entry[2]["edition"] == edition])
        for edition in editions
    ]


def overview(folder: Folder, number: int) -> Overview:
    """What one run came to."""
    seconds, steps = (last(folder.metrics.get(name, [])) for name in ("seconds", "steps"))
    total = folder.evaluation and folder.evaluation["total"]
    return Overview(
        name=folder.name,
        colour=series(number),
        edition=str(folder.settings.get("edition", "")),
        red=shown(folder.settings.get("red_agent", "")),
        total=Figure(total["mean"], total["standard_error"]) if total else None,
        check=_best_check(folder),
        episodes=int(last(folder.metrics.get("episodes", []))),
        seconds=seconds,
        steps_per_second=steps / seconds if seconds else 0.0,
    )


def settings(folders: Sequence[Folder]) -> list[Setting]:
    """Every setting that any of the runs has, in their order."""
    names = dict.fromkeys(name for folder in folders for name in folder.settings)
    return [
        Setting(name, [shown(f.settings[name]) if name in f.settings else None for f in folders])
        for name in names
    ]


def shown(value: Any) -> str:
    """A setting's value as a reader would write it."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return ", ".join(shown(part) for part in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value is None else json.dumps(value)


def last(values: Sequence[float]) -> float:
    """The last value that is one; 0 where there is none."""
    return next((value for value in reversed(values) if math.isfinite(value)), 0.0)


def _best_check(folder: Folder) -> Figure | None:
    checks = zip(
        *(folder.checks.get(name, []) for name in ("score", "standard_error")), strict=True
    )
    scored = [(score, error) for score, error in checks if math.isfinite(score)]
    return Figure(*max(scored)) if scored else None


def _score_table(edition: str, entries: Sequence[tuple[int, Folder, Evaluation]]) -> ScoreTable:
    columns = _columns(evaluation for _, _, evaluation in entries)
    places = [(red, length) for red, lengths in columns.items() for length in lengths]
    rows = [_own_row(number, folder, places) for number, folder, _ in entries]
    published = [one for _, _, evaluation in entries for one in evaluation["published"]]
    distinct = {(one["name"], one["method"]): one for one in published}
    rows += [_published_row(one, places) for one in distinct.values()]
    rows.sort(key=lambda row: row.total.mean if row.total else -math.inf, reverse=True)
    return ScoreTable(edition, columns, _with_best(rows))


def _columns(evaluations: Iterable[Evaluation]) -> dict[str, list[int]]:
    lengths: dict[str, set[int]] = {}
    for evaluation in evaluations:
        for cell in evaluation["scores"]:
            lengths.setdefault(cell["red"], set()).add(cell["length"])
    return {red: sorted(of_red) for red, of_red in lengths.items()}


def _own_row(number: int, folder: Folder, places: Sequence[tuple[str, int]]) -> ScoreRow:
    evaluation = folder.evaluation
    assert evaluation, "only runs that were evaluated have a row"
    cells = {
        (cell["red"], cell["length"]): Figure(cell["mean"], cell["standard_error"])
        for cell in evaluation["scores"]
    }
    total = evaluation["total"]
    where = "in CybORG" if evaluation["env"] == "cyborg" else "native"
    return ScoreRow(
        name=folder.name,
        note=f"{evaluation['episodes']:,} episodes a cell, {where}",
        source=str(folder.path),
        colour=series(number),
        cells=[cells.get(place) for place in places],
        total=Figure(total["mean"], total["standard_error"]) if total else None,
    )


def _published_row(result: Published, places: Sequence[tuple[str, int]]) -> ScoreRow:
    means = [result["cells"].get(red, {}).get(str(length)) for red, length in places]
    return ScoreRow(
        name=result["name"],
        note=result["method"],
        source=result["source"],
        colour=None,
        cells=[None if mean is None else Figure(mean) for mean in means],
        total=Figure(result["total"]),
    )


def _with_best(rows: list[ScoreRow]) -> list[ScoreRow]:
    """The same rows, with the best figure of every column marked where there are several."""
    columns = list(zip(*([*row.cells, row.total] for row in rows), strict=True))
    tops = [_top([figure.mean for figure in column if figure]) for column in columns]
    return [
        replace(
            row,
            cells=list(map(_marked, row.cells, tops)),
            total=_marked(row.total, tops[-1]),
        )
        for row in rows
    ]


def _top(means: Sequence[float]) -> float | None:
    """The best of a column, if it is better than another."""
    return max(means) if len({*means}) > 1 else None


def _marked(figure: Figure | None, top: float | None) -> Figure | None:
    return figure and Figure(figure.mean, figure.standard_error, best=figure.mean == top)

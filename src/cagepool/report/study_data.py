"""Content of the page about a study: tables that the page shows and that can be downloaded."""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cagepool.report.tables import format_value
from cagepool.runs import flat_settings
from cagepool.runs.study_schema import (
    BEHAVIOR,
    RESULTS,
    STATISTICS,
    STUDY,
    Comparison,
    EditionResults,
    Estimate,
    ResultsFile,
    SettingResults,
)

NOT_KNOWN = "\N{EN DASH}"
_LATEX = {char: f"\\{char}" for char in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "\N{MINUS SIGN}": "-",
    NOT_KNOWN: "--",
    **{char: f"${char}$" for char in "<>|"},
}


@dataclass(frozen=True)
class Cell:
    """A value of a table: text on the page, and numbers for files."""

    text: str
    note: str = ""  # in smaller letters, such as an interval
    value: float | None = None
    low: float | None = None  # of the interval
    high: float | None = None
    heat: int | None = None  # percent of the color of a matrix

    @property
    def plain(self) -> str:
        """The whole text."""
        return f"{self.text} {self.note}".strip()

    @property
    def content(self) -> float | str:
        """The number for files; the text where there is none; empty where nothing is known."""
        if self.value is not None:
            return self.value
        return "" if self.text == NOT_KNOWN else self.text


@dataclass(frozen=True)
class DataTable:
    """A table with row titles."""

    name: str  # of the files
    title: str
    columns: list[str]
    rows: dict[str, list[Cell]]

    @property
    def csv(self) -> str:
        """The table as comma-separated values: an interval has columns for its ends."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        header = [[name, f"{name} low", f"{name} high"] for name in self.columns]
        writer.writerow(["", *self._chosen(header)])
        for title, cells in self.rows.items():
            values = [[cell.content, cell.low, cell.high] for cell in cells]
            writer.writerow([title, *self._chosen(values)])
        return text.getvalue()

    @property
    def latex(self) -> str:
        """The table for a LaTeX document that uses booktabs."""
        lines = [
            rf"\begin{{tabular}}{{l{'r' * len(self.columns)}}}",
            r"\toprule",
            " & ".join(["", *map(escape_latex, self.columns)]) + r" \\",
            r"\midrule",
            *(
                " & ".join([_latex_title(title), *(escape_latex(cell.plain) for cell in cells)])
                + r" \\"
                for title, cells in self.rows.items()
            ),
            r"\bottomrule",
            r"\end{tabular}",
        ]
        return "\n".join(lines) + "\n"

    def _chosen(self, row: Sequence[Sequence[object]]) -> list[object]:
        """Values of a row that has value, low and high per column; ends only of intervals."""
        return [
            entry
            for number, entries in enumerate(row)
            for entry in entries[: 3 if self._has_intervals(number) else 1]
        ]

    def _has_intervals(self, column: int) -> bool:
        return any(cells[column].low is not None for cells in self.rows.values())


def is_study_folder(path: Path) -> bool:
    """Whether a folder was written by a study."""
    return (path / STUDY).is_file() or (path / RESULTS).is_file()


def score_table(edition: EditionResults, target: float) -> DataTable:
    """Statistics over seeds by setting.

    The optimality gap is left out for a target of 0: it is the mean without its sign.
    """
    titles = {
        name: title for name, title in STATISTICS.items() if name != "optimality_gap" or target
    }

    def cells(setting: SettingResults) -> list[Cell]:
        return [
            Cell(str(len(setting.seeds))),
            *(_estimate(setting.statistics.get(name), 1) for name in titles),
            _number(setting.standard_deviation, 1),
            _number(setting.interquartile_range, 1),
        ]

    columns = ["Seeds", *titles.values(), "SD", "IQR"]
    return _table(edition, "scores", "Scores over seeds", columns, cells)


def seed_table(edition: EditionResults) -> DataTable:
    """Totals of all runs."""
    seeds = sorted({seed for setting in edition.settings for seed in setting.seeds})

    def cells(setting: SettingResults) -> list[Cell]:
        totals = dict(zip(setting.seeds, setting.totals, strict=True))
        return [_number(totals.get(seed), 1) for seed in seeds]

    return _table(edition, "totals", "Total of each run", [f"seed {seed}" for seed in seeds], cells)


def comparison_table(edition: EditionResults) -> DataTable:
    """Differences and probabilities of improvement."""
    return DataTable(
        name=f"comparisons-{edition.edition}",
        title=f"Comparisons, edition {edition.edition}",
        columns=["Difference of totals", "P(improvement)", "p (Holm)", "Seeds"],
        rows={f"{one.first} vs. {one.second}": _comparison(one) for one in edition.comparisons},
    )


def matrix_table(edition: EditionResults) -> DataTable:
    """Scores by setting and by the red that was played against."""
    reds = [*edition.settings[0].by_red]
    columns = {red: [one.by_red[red].estimate for one in edition.settings] for red in reds}

    def cells(setting: SettingResults) -> list[Cell]:
        return [
            _estimate(found, 1, heat=_heat(found.estimate, columns[red]))
            for red, found in setting.by_red.items()
        ]

    return _table(edition, "matrix", "Trained as (rows), played against (columns)", reds, cells)


def behavior_table(edition: EditionResults) -> DataTable:
    """What defenders do, by setting."""
    present = {
        name: title
        for name, (title, _, _) in BEHAVIOR.items()
        if any(name in setting.behavior for setting in edition.settings)
    }

    def cells(setting: SettingResults) -> list[Cell]:
        digits = {name: 2 if name == "time_to_fix" else 3 for name in present}
        return [_estimate(setting.behavior.get(name), digits[name]) for name in present]

    return _table(edition, "behavior", "Behavior", [*present.values()], cells)


def loss_table(edition: EditionResults, causes: Mapping[str, str]) -> DataTable:
    """Mean loss per game of 100 steps by cause, summed over reds."""

    def cells(setting: SettingResults) -> list[Cell]:
        losses = setting.loss.values()
        return [_number(sum(one.get(cause, 0.0) for one in losses), 2) for cause in causes]

    return _table(edition, "loss", "Loss by cause", [*causes.values()], cells)


def settings_table(results: ResultsFile) -> tuple[DataTable, list[tuple[str, str]]]:
    """Settings that differ between the rows of the study, and those that all share."""
    flat = {name: flat_settings(one) for name, one in results.study.settings.items()}
    names = [*next(iter(flat.values()))]
    differing = [name for name in names if len({repr(one.get(name)) for one in flat.values()}) > 1]
    table = DataTable(
        name="settings",
        title="Settings that differ",
        columns=differing,
        rows={
            name: [Cell(format_value(one.get(setting))) for setting in differing]
            for name, one in flat.items()
        },
    )
    first = next(iter(flat.values()))
    left_out = {*differing, "run.seed"}
    shared = [(name, format_value(first[name])) for name in names if name not in left_out]
    return table, shared


def escape_latex(text: str) -> str:
    """Text for LaTeX."""
    return re.sub("|".join(map(re.escape, _LATEX)), lambda found: _LATEX[found[0]], text)


def _latex_title(title: str) -> str:
    r"""Title of a row; `[` and `*` would be read as options of the `\\` before them."""
    return ("{}" if title.startswith(("[", "*")) else "") + escape_latex(title)


def _table(
    edition: EditionResults,
    name: str,
    title: str,
    columns: list[str],
    cells: Callable[[SettingResults], list[Cell]],
) -> DataTable:
    """A table with one row per setting."""
    return DataTable(
        name=f"{name}-{edition.edition}",
        title=f"{title}, edition {edition.edition}",
        columns=columns,
        rows={setting.name: cells(setting) for setting in edition.settings},
    )


def _comparison(found: Comparison) -> list[Cell]:
    p_value = found.p_value
    return [
        _estimate(found.difference, 1),
        _estimate(found.improvement, 2),
        Cell("< 0.001" if p_value < 0.001 else f"{p_value:.3f}", value=p_value),
        Cell(str(found.seeds)),
    ]


def _estimate(found: Estimate | None, digits: int, *, heat: int | None = None) -> Cell:
    if found is None:
        return Cell(NOT_KNOWN)
    low, high = (f"{value:.{digits}f}" for value in (found.low, found.high))
    return Cell(
        text=f"{found.estimate:.{digits}f}",
        note=f"[{low}, {high}]",
        value=found.estimate,
        low=found.low,
        high=found.high,
        heat=heat,
    )


def _number(value: float | None, digits: int) -> Cell:
    return Cell(NOT_KNOWN) if value is None else Cell(f"{value:.{digits}f}", value=value)


def _heat(value: float, column: Sequence[float]) -> int:
    """Percent of the way from the best to the worst value of a column."""
    best, worst = max(column), min(column)
    return round(100 * (best - value) / (best - worst)) if best > worst else 0

"""Tables of scores and of benchmark results on a terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Column, Table

from cagepool.bench.schema import BenchResult, Measurement, split_settings
from cagepool.evaluate import Score, ScoreTable

if TYPE_CHECKING:  # needs SciPy
    from cagepool.bench.compare import Change, Comparison

NOTABLE_LOAD = 0.1  # share of the machine that other processes used
MAX_WIDTH = 1000  # of a table that is measured, not printed
FULL_WIDTH = 75  # of a terminal that has room between columns
VERDICT_STYLES = {"slower": "red", "faster": "green", "no change": ""}


@dataclass(frozen=True)
class ReferenceScores:
    """Formatted scores that are printed below those of the evaluated policy."""

    name: str
    cells: Mapping[str, Mapping[int, str]]  # by red agent, then by episode length
    total: str


def format_score(score: Score) -> str:
    """Mean ± standard error."""
    return f"{score.mean:.2f} ± {score.standard_error:.2f}"


def print_scores(
    console: Console, name: str, result: ScoreTable, references: Sequence[ReferenceScores] = ()
) -> None:
    """Print one row of scores per red agent, each followed by the references, and the totals."""
    trial = result.trial
    edition = f"edition {trial.edition}{' with green' if trial.green else ''}"
    episodes = f"{trial.episodes} episodes against each red, seed {trial.seed}"
    console.print(f"{name}, {edition}, {episodes}", soft_wrap=True)
    console.print("mean total reward ± standard error")
    table = _wide_table(result, references)
    fits = table.__rich_measure__(console, console.options.update(width=MAX_WIDTH)).maximum
    console.print(table if fits <= console.width else _narrow_table(result, references))
    if result.total:
        console.print(f"total of the nine cells: {format_score(result.total)}")
        for reference in references:
            console.print(f"  {reference.name}: {reference.total}", style="dim")


def _wide_table(result: ScoreTable, references: Sequence[ReferenceScores]) -> Table:
    """One row per red agent, one column per length."""
    table = Table(Column("red", no_wrap=True), box=box.SIMPLE_HEAD)
    for length in result.trial.lengths:
        table.add_column(f"{length} steps", justify="right", no_wrap=True)
    for red, scores in result.scores.items():
        table.add_row(red, *map(format_score, scores.values()))
        for reference in references:
            cells = (reference.cells[red].get(length, "") for length in result.trial.lengths)
            table.add_row(f"  {reference.name}", *cells, style="dim")
    return table


def _narrow_table(result: ScoreTable, references: Sequence[ReferenceScores]) -> Table:
    """One row per red agent and length."""
    columns = [Column(name, justify="right", no_wrap=True) for name in ("steps", "score")]
    table = Table(Column("red", no_wrap=True), *columns, box=box.SIMPLE_HEAD)
    for red, scores in result.scores.items():
        for length, score in scores.items():
            table.add_row(red, str(length), format_score(score))
            for reference in references:
                cell = reference.cells[red].get(length, "")
                table.add_row(f"  {reference.name}", "", cell, style="dim")
    return table


def figures_table(console: Console, first: str, columns: Sequence[str]) -> Table:
    """An empty table of a name and figures, without space between columns if that is scarce."""
    padding = (0, 1) if console.width >= FULL_WIDTH else (0, 0)
    figures = [Column(name, justify="right") for name in columns]
    return Table(Column(first, no_wrap=True), *figures, box=box.SIMPLE_HEAD, padding=padding)


def print_bench_result(console: Console, result: BenchResult) -> None:
    """Print the machine and its load, one table per group, and the ratios."""
    machine = result.machine
    load = f"load {machine['load']} before and {result.load_after} after"
    console.print(f"\n{machine['processor']}, {machine['cores']} cores, {load}")
    if result.busy_elsewhere and result.busy_elsewhere > NOTABLE_LOAD:
        share = f"{result.busy_elsewhere:.0%}"
        console.print(f"other processes used {share} of the machine meanwhile", style="yellow")
    console.print()
    for group, measurements in result.groups.items():
        _print_group(console, group, measurements)
    ratios = Table(Column(justify="right"), Column(), box=None, show_header=False)
    for name, value in result.ratios.items():
        ratios.add_row(f"{value:,.0f}" if value >= 1000 else f"{value:.3g}", name)
    console.print(ratios)


def _print_group(console: Console, group: str, measurements: list[Measurement]) -> None:
    """Print the common settings as heading, and one row per measurement with the others."""
    differing, common = split_settings([measurement.settings for measurement in measurements])
    console.print(f"{group}: {common}", style="bold")
    columns = [Column(name, justify="right") for name in (*differing, "ns per step", "steps/s")]
    table = Table(Column("contender", no_wrap=True), *columns, box=box.SIMPLE_HEAD)
    for measurement in measurements:
        settings = (str(measurement.settings.get(name, "")) for name in differing)
        cost = measurement.nanoseconds_per_step
        low, high = map(_format_figure, cost.quartiles)
        rate = _format_figure(measurement.steps_per_second)
        table.add_row(
            measurement.name, *settings, f"{_format_figure(cost.median)} ({low}-{high})", rate
        )
    console.print(table)


def print_comparison(console: Console, comparison: "Comparison") -> None:
    """Print significant changes, and the number of contenders without one."""
    for name, (old, new) in comparison.machine.items():
        console.print(f"{name} was {old}, now {new}: a possible cause of changes", style="yellow")
    changed = [change for change in comparison.changes if change.verdict != "no change"]
    if changed:
        console.print(_changes_table(changed))
    unchanged = len(comparison.changes) - len(changed)
    console.print(f"{_contenders(unchanged)}: no change{_noise_levels(comparison.changes)}")
    for label, count in (("removed", len(comparison.removed)), ("added", len(comparison.added))):
        if count:
            console.print(f"{_contenders(count)}: {label}, nothing to compare with")


def _changes_table(changes: "list[Change]") -> Table:
    columns = [Column(name, justify="right") for name in ("before", "after", "change", "noise")]
    table = Table("contender", *columns, box=box.SIMPLE_HEAD)
    for change in changes:
        settings = "".join(f", {name} {value}" for name, value in change.settings.items())
        label = f"{change.group}: {change.name}{settings}"
        verdict = f"{abs(change.change):.0%} {change.verdict}"
        figures = (_format_figure(change.before_ns), _format_figure(change.after_ns))
        style = VERDICT_STYLES[change.verdict]
        table.add_row(label, *figures, verdict, f"{change.noise:.0%}", style=style)
    return table


def _noise_levels(changes: "list[Change]") -> str:
    """Median and maximum of the smallest change that would have been detected."""
    noises = sorted(change.noise for change in changes if change.verdict == "no change")
    if not noises:
        return ""
    median, maximum = (_format_noise(noises[index]) for index in (len(noises) // 2, -1))
    return f" beyond noise ({median} for most, {maximum} at worst)"


def _format_noise(value: float) -> str:
    return f"{value:.0%}" if value < 10 else "anything"


def _contenders(count: int) -> str:
    return f"{count} contender{'' if count == 1 else 's'}"


def _format_figure(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:,.1f}M"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"

"""Tables of scores, alone or beside others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Column, Table

from cagepool.evaluate.rollout import Score, ScoreTable


@dataclass(frozen=True)
class Beside:
    """Somebody's scores as text, to stand below one's own."""

    name: str
    cells: Mapping[str, Mapping[int, str]]  # by red, then by length
    total: str


def shown(score: Score) -> str:
    """A score with its error."""
    return f"{score.mean:.2f} ± {score.standard_error:.2f}"


def print_scores(
    console: Console, who: str, result: ScoreTable, beside: Sequence[Beside] = ()
) -> None:
    """Print who was played, a row for each red, below it those beside, and the total."""
    trial = result.trial
    edition = f"edition {trial.edition}{' with green' if trial.green else ''}"
    played = f"{trial.episodes} episodes against each red, seed {trial.seed}"
    console.print(f"{who}, {edition}, {played}", soft_wrap=True)
    console.print("mean total reward ± standard error")
    table = Table(Column("red", overflow="fold"), box=box.SIMPLE_HEAD)
    for length in trial.lengths:
        table.add_column(f"{length} steps", justify="right", no_wrap=True)
    for red, scores in result.scores.items():
        table.add_row(red, *map(shown, scores.values()))
        for other in beside:
            cells = (other.cells[red].get(length, "") for length in trial.lengths)
            table.add_row(f"  {other.name}", *cells, style="dim")
    console.print(table)
    if result.total:
        console.print(f"total of the nine cells: {shown(result.total)}")
        for other in beside:
            console.print(f"  {other.name}: {other.total}", style="dim")

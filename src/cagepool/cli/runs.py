"""`cagepool runs`: which runs there are, in what they differ, and which is the best."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from rich import box
from rich.console import Console
from rich.table import Column, Table
from tyro.conf import Positional, arg

from cagepool.cli.display import CommandConsole, actors_replaced
from cagepool.cli.tables import format_score
from cagepool.evaluate.overview import (
    Damaged,
    Overview,
    best,
    best_check,
    differing,
    find,
    overview,
)
from cagepool.evaluate.rollout import Score

MANY = 5  # runs that are named one by one where a setting differs


@dataclass(frozen=True, kw_only=True)
class Runs:
    """List run folders, tell in what they differ and which is the best."""

    folders: Annotated[
        Positional[tuple[Path, ...]],
        arg(metavar="FOLDER", help="Folders in which, and below which, runs are looked for."),
    ] = (Path("runs"),)
    json: bool = False
    """Print JSON instead of tables."""


def runs(command: Runs) -> None:
    """Look for runs and print what was found."""
    paths = dict.fromkeys(path for folder in command.folders for path in find(folder))
    everything = [overview(path) for path in paths]
    intact = [one for one in everything if isinstance(one, Overview)]
    damaged = [one for one in everything if isinstance(one, Damaged)]
    console = CommandConsole()
    if command.json:
        console.out(json.dumps(_as_dict(intact, damaged), indent=2))
        return
    if not everything:
        console.print(f"no runs in {', '.join(map(str, command.folders))}")
    if intact:
        _print_runs(console, intact)
        _print_differences(console, intact)
        _print_best(console, intact)
    for one in damaged:
        console.print(f"damaged: {one.fault}", soft_wrap=True)


def _print_runs(console: Console, found: Sequence[Overview]) -> None:
    table = Table(Column("run", overflow="fold"), "red", "edition", box=box.SIMPLE_HEAD)
    for column in ("episodes", "best check", "total"):
        table.add_column(column, justify="right", no_wrap=True)
    for one in found:
        red, edition, _ = one.game
        episodes = f"{one.episodes:,}" if one.is_finished else f"{one.episodes:,}/{one.wanted:,}"
        check = f"{one.check.mean:.2f}" if one.check else "-"
        table.add_row(str(one.path), red, edition, episodes, check, _shown(one.total))
    console.print(table)
    for one in found:
        if not one.is_finished:
            rest = f"interrupted; go on with: cagepool train --resume {one.path}"
            console.print(f"{one.path}: {rest}", soft_wrap=True)
        if one.replaced:
            console.print(f"{one.path}: {actors_replaced(one.replaced)}", soft_wrap=True)


def _shown(score: Score | None) -> str:
    return "-" if score is None else format_score(score)


def _print_differences(console: Console, found: Sequence[Overview]) -> None:
    different = differing(found)
    if different:
        console.print("settings that differ")
    for name, values in different.items():
        parts = (f"{value} ({_named(holders)})" for value, holders in values.items())
        console.print(f"  {name}: {'; '.join(parts)}", soft_wrap=True)


def _named(holders: Sequence[str]) -> str:
    return ", ".join(holders) if len(holders) <= MANY else f"{len(holders)} runs"


def _print_best(console: Console, found: Sequence[Overview]) -> None:
    for edition, one in best(found).items():
        console.print(
            f"best total, edition {edition}: {one.path}, {_shown(one.total)}", soft_wrap=True
        )
    for (red, edition, steps), one in best_check(found).items():
        game = f"{red}, edition {edition}, {steps} steps"
        console.print(f"best check, {game}: {one.path}, {_shown(one.check)}", soft_wrap=True)


def _state(one: Overview) -> str:
    return "finished" if one.is_finished else "interrupted"


def _as_dict(intact: Sequence[Overview], damaged: Sequence[Damaged]) -> dict[str, Any]:
    return {
        "runs": [{**asdict(one), "path": str(one.path), "state": _state(one)} for one in intact],
        "damaged": [{"path": str(one.path), "fault": one.fault} for one in damaged],
        "differing": differing(intact),
        "best": {edition: str(one.path) for edition, one in best(intact).items()},
    }

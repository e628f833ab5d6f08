"""`cagepool runs`: which runs there are, in what they differ, and which is the best."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from rich import box
from rich.console import Console
from rich.table import Column, Table
from tyro.conf import Positional, arg

from cagepool.cli.display import CommandConsole, actors_replaced
from cagepool.cli.tables import format_score
from cagepool.evaluate.policy import CAGE_ENVS
from cagepool.runs.listing import (
    DamagedRun,
    RunSummary,
    best_checks,
    best_totals,
    differing_settings,
    find_runs,
    summarize,
)
from cagepool.runs.schema import Score

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
    paths = dict.fromkeys(path for folder in command.folders for path in find_runs(folder))
    everything = [summarize(path) for path in paths]
    intact = [one for one in everything if isinstance(one, RunSummary)]
    damaged = [one for one in everything if isinstance(one, DamagedRun)]
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


def _print_runs(console: Console, found: Sequence[RunSummary]) -> None:
    table = Table(Column("run", overflow="fold"), "red", "edition", box=box.SIMPLE_HEAD)
    for column in ("episodes", "best check", "total"):
        table.add_column(column, justify="right", no_wrap=True)
    for one in found:
        episodes = (
            f"{one.episodes:,}" if one.is_finished else f"{one.episodes:,}/{one.total_episodes:,}"
        )
        check = f"{one.check.mean:.2f}" if one.check else "-"
        table.add_row(
            str(one.path), _opponent(one), one.edition, episodes, check, _shown(one.total)
        )
    console.print(table)
    for one in found:
        if not one.is_finished:
            rest = f"interrupted; resume with: cagepool train --resume {one.path}"
            console.print(f"{one.path}: {rest}", soft_wrap=True)
        if one.replaced:
            console.print(f"{one.path}: {actors_replaced(one.replaced)}", soft_wrap=True)


def _shown(score: Score | None) -> str:
    return "-" if score is None else format_score(score)


def _print_differences(console: Console, found: Sequence[RunSummary]) -> None:
    different = differing_settings(found)
    if different:
        console.print("settings that differ")
    for name, values in different.items():
        parts = (f"{value} ({_named(holders)})" for value, holders in values.items())
        console.print(f"  {name}: {'; '.join(parts)}", soft_wrap=True)


def _named(holders: Sequence[str]) -> str:
    return ", ".join(holders) if len(holders) <= MANY else f"{len(holders)} runs"


def _print_best(console: Console, found: Sequence[RunSummary]) -> None:
    for edition, one in best_totals(found).items():
        console.print(
            f"best total, edition {edition}: {one.path}, {_shown(one.total)}", soft_wrap=True
        )
    for one in best_checks(found).values():
        game = f"{_opponent(one)}, edition {one.edition}, {one.max_steps} steps"
        console.print(f"best check, {game}: {one.path}, {_shown(one.check)}", soft_wrap=True)


def _opponent(one: RunSummary) -> str:
    """The red agents, or the environment where it is not CAGE-2."""
    return one.red_agent if one.env in CAGE_ENVS else one.env


def _state(one: RunSummary) -> str:
    return "finished" if one.is_finished else "interrupted"


def _as_dict(intact: Sequence[RunSummary], damaged: Sequence[DamagedRun]) -> dict[str, Any]:
    return {
        "runs": [
            {**msgspec.to_builtins(one, enc_hook=str), "state": _state(one)} for one in intact
        ],
        "damaged": [{"path": str(one.path), "fault": one.fault} for one in damaged],
        "differing": differing_settings(intact),
        "best": {edition: str(one.path) for edition, one in best_totals(intact).items()},
    }

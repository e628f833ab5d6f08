"""`cagepool runs`: list runs, the settings that differ, and the best runs."""

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

MAX_NAMES = 5  # of runs that have the same value of a setting


@dataclass(frozen=True, kw_only=True)
class Runs:
    """List run folders with their scores, the settings that differ, and the best runs."""

    folders: Annotated[
        Positional[tuple[Path, ...]],
        arg(metavar="FOLDER", help="Folders that are searched recursively for runs."),
    ] = (Path("runs"),)
    json: bool = False
    """Print JSON instead of tables."""


def runs(command: Runs) -> None:
    """Find runs and print them."""
    paths = dict.fromkeys(path for folder in command.folders for path in find_runs(folder))
    summaries = [summarize(path) for path in paths]
    intact = [run for run in summaries if isinstance(run, RunSummary)]
    damaged = [run for run in summaries if isinstance(run, DamagedRun)]
    console = CommandConsole()
    if command.json:
        console.out(json.dumps(_as_dict(intact, damaged), indent=2))
        return
    if not summaries:
        console.print(f"no runs in {', '.join(map(str, command.folders))}")
    if intact:
        _print_runs(console, intact)
        _print_differences(console, intact)
        _print_best(console, intact)
    for run in damaged:
        console.print(f"damaged: {run.fault}", soft_wrap=True)


def _print_runs(console: Console, runs: Sequence[RunSummary]) -> None:
    table = Table(Column("run", overflow="fold"), "red", "edition", box=box.SIMPLE_HEAD)
    for column in ("episodes", "best eval", "total"):
        table.add_column(column, justify="right", no_wrap=True)
    for run in runs:
        episodes = (
            f"{run.episodes:,}" if run.is_finished else f"{run.episodes:,}/{run.total_episodes:,}"
        )
        check = f"{run.check.mean:.2f}" if run.check else "-"
        table.add_row(
            str(run.path), _opponent(run), run.edition, episodes, check, _format_optional(run.total)
        )
    console.print(table)
    for run in runs:
        if not run.is_finished:
            state = f"interrupted; resume with: cagepool train --resume {run.path}"
            console.print(f"{run.path}: {state}", soft_wrap=True)
        if run.replaced:
            console.print(f"{run.path}: {actors_replaced(run.replaced)}", soft_wrap=True)


def _format_optional(score: Score | None) -> str:
    return "-" if score is None else format_score(score)


def _print_differences(console: Console, runs: Sequence[RunSummary]) -> None:
    different = differing_settings(runs)
    if different:
        console.print("settings that differ")
    for name, values in different.items():
        parts = (f"{value} ({_name_runs(names)})" for value, names in values.items())
        console.print(f"  {name}: {'; '.join(parts)}", soft_wrap=True)


def _name_runs(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= MAX_NAMES else f"{len(names)} runs"


def _print_best(console: Console, runs: Sequence[RunSummary]) -> None:
    for edition, run in best_totals(runs).items():
        console.print(
            f"best total, edition {edition}: {run.path}, {_format_optional(run.total)}",
            soft_wrap=True,
        )
    for run in best_checks(runs).values():
        game = f"{_opponent(run)}, edition {run.edition}, {run.max_steps} steps"
        console.print(
            f"best evaluation, {game}: {run.path}, {_format_optional(run.check)}", soft_wrap=True
        )


def _opponent(run: RunSummary) -> str:
    """Red agents in CAGE-2, else the environment."""
    return run.red_agent if run.env in CAGE_ENVS else run.env


def _state(run: RunSummary) -> str:
    return "finished" if run.is_finished else "interrupted"


def _as_dict(intact: Sequence[RunSummary], damaged: Sequence[DamagedRun]) -> dict[str, Any]:
    return {
        "runs": [
            {**msgspec.to_builtins(run, enc_hook=str), "state": _state(run)} for run in intact
        ],
        "damaged": [{"path": str(run.path), "fault": run.fault} for run in damaged],
        "differing": differing_settings(intact),
        "best": {edition: str(run.path) for edition, run in best_totals(intact).items()},
    }

"""`cagepool runs`: list runs, searches and studies; `cagepool report`: write a page about them."""

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, arg

from cagepool import _optional
from cagepool.cli.args import NO_DEFAULT, resume_command
from cagepool.cli.display import CommandConsole, actors_replaced, command_line, format_score
from cagepool.policy.policy import CAGE_ENVS
from cagepool.runs.listing import (
    DamagedRun,
    RunSummary,
    SearchSummary,
    StudySummary,
    best_evaluations,
    best_totals,
    differing_settings,
    find_runs,
    summarize,
)
from cagepool.runs.schema import Score

REPORT = "report.html"
MAX_NAMES = 5  # of runs that have the same value of a setting
NO_LIMIT = 100_000  # columns
CAGE_FIELDS = ("red_agent", "edition", "max_steps")  # null for other environments


@dataclass(frozen=True, kw_only=True)
class Runs:
    """List run folders with their scores, the settings that differ, and the best runs.

    A search or a study is one line; name its folder to list its trainings.
    """

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
    searches = [run for run in summaries if isinstance(run, SearchSummary)]
    studies = [run for run in summaries if isinstance(run, StudySummary)]
    damaged = [run for run in summaries if isinstance(run, DamagedRun)]
    console = CommandConsole()
    if command.json:
        listed = {**_as_dict(intact, searches, damaged), "studies": [*map(_listed, studies)]}
        console.out(json.dumps(listed, indent=2))
        return
    if not summaries:
        console.print(f"no runs in {', '.join(map(str, command.folders))}")
    if intact:
        _print_runs(console, intact)
        _print_differences(console, intact)
        _print_best(console, intact)
    for search in searches:
        console.print(_search_line(search), soft_wrap=True)
    for study in studies:
        console.print(_study_line(study), soft_wrap=True)
    for run in damaged:
        console.print(f"damaged: {run.fault}", soft_wrap=True)


def _print_runs(console: Console, runs: Sequence[RunSummary]) -> None:
    """Print a table; where the console is too narrow for it, a paragraph per run."""
    table = Table("run", "red", "edition", box=box.SIMPLE_HEAD)
    for column in ("episodes", "best eval", "total"):
        table.add_column(column, justify="right")
    for run in runs:
        table.add_row(str(run.path), *_cells(run).values())
    wide = console.options.update(width=NO_LIMIT)
    if console.measure(table, options=wide).maximum <= console.width:
        console.print(table)
    else:
        for run in runs:
            console.print(str(run.path), soft_wrap=True)
            phrases = "; ".join(f"{name} {cell}" for name, cell in _cells(run).items())
            indent = " " * 4
            console.print(
                textwrap.fill(
                    phrases, console.width, initial_indent=indent, subsequent_indent=indent
                )
            )
        console.print()
    for run in runs:
        if not run.is_finished:
            resume = resume_command("train", run.path, run.settings)
            console.print(f"{run.path}: interrupted; resume with: {resume}", soft_wrap=True)
        if run.replaced:
            console.print(f"{run.path}: {actors_replaced(run.replaced)}", soft_wrap=True)


def _cells(run: RunSummary) -> dict[str, str]:
    episodes = (
        f"{run.episodes:,}" if run.is_finished else f"{run.episodes:,}/{run.total_episodes:,}"
    )
    cage = {"red": run.red_agent, "edition": run.edition}
    return {
        **(cage if run.env in CAGE_ENVS else {"env": run.env, "edition": "-"}),
        "episodes": episodes,
        "best eval": f"{run.best_evaluation.mean:.2f}" if run.best_evaluation else "-",
        "total": _format_optional(run.total),
    }


def _search_line(search: SearchSummary) -> str:
    trainings = f"{search.trainings} {'training' if search.trainings == 1 else 'trainings'}"
    counts = f"{trainings}, {search.episodes:,}/{search.total_episodes:,} episodes"
    line = f"{search.path}: search ({search.method}) against {search.red_agent}, {counts}"
    if search.best_order is not None:
        line += f", best {search.best_order} {search.best_reward:.2f}"
    if not search.is_finished:
        line += f"; interrupted; resume with: {resume_command('search', search.path, {})}"
    return line


def _study_line(study: StudySummary) -> str:
    line = f"{study.path}: study of {study.settings} settings, {study.complete}/{study.runs} runs"
    if not study.is_finished:
        line += f"; interrupted; resume with: {command_line('study', study.path)}"
    return line


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
    for run in best_evaluations(runs).values():
        console.print(
            f"best evaluation, {_game(run)}: {run.path}, {_format_optional(run.best_evaluation)}",
            soft_wrap=True,
        )


def _game(run: RunSummary) -> str:
    if run.env not in CAGE_ENVS:
        return run.env
    return f"{run.red_agent}, edition {run.edition}, {run.max_steps} steps"


def _state(run: RunSummary | SearchSummary | StudySummary) -> str:
    return "finished" if run.is_finished else "interrupted"


def _listed(run: RunSummary | SearchSummary | StudySummary) -> dict[str, Any]:
    is_other = isinstance(run, RunSummary) and run.env not in CAGE_ENVS
    return {
        **msgspec.to_builtins(run, enc_hook=str),
        **(dict.fromkeys(CAGE_FIELDS) if is_other else {}),
        "state": _state(run),
    }


def _as_dict(
    intact: Sequence[RunSummary], searches: Sequence[SearchSummary], damaged: Sequence[DamagedRun]
) -> dict[str, Any]:
    return {
        "runs": [*map(_listed, intact)],
        "searches": [*map(_listed, searches)],
        "damaged": [{"path": str(run.path), "fault": run.fault} for run in damaged],
        "differing": differing_settings(intact),
        "best": {edition: str(run.path) for edition, run in best_totals(intact).items()},
    }


@dataclass(frozen=True, kw_only=True)
class Report:
    """Write an HTML report of runs (scores, learning curves, replay), a study, or benchmarks."""

    runs: Annotated[Positional[tuple[Path, ...]], arg(metavar="RUN..."), NO_DEFAULT]
    """One or several run folders, the folder of a study or search, or JSON of `cagepool bench`."""
    out: Annotated[Path | None, arg(metavar="FILE"), NO_DEFAULT] = None
    """HTML file to write. Default: report.html in the run folder; for several, in this folder."""


def report(command: Report) -> None:
    """Write the report and print its path."""
    with _optional.require("a report", "report", "matplotlib", "jinja2"):
        from cagepool.report import write_report  # noqa: PLC0415 - needs the libraries

    is_single_run = len(command.runs) == 1 and command.runs[0].is_dir()
    folder = command.runs[0] if is_single_run else Path()
    out = command.out or folder / REPORT
    write_report(command.runs, out)
    print(out)

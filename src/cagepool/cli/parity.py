"""`cagepool parity`: compare the native simulator with CybORG, step by step."""

import json
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from tyro.conf import arg

from cagepool.cli import EXIT_FAILURE
from cagepool.cli.args import NO_DEFAULT, RED_LIST
from cagepool.cli.display import CommandConsole, progress_bars
from cagepool.cyborg import VARIABLE, CybORGNotFoundError
from cagepool.parity import (
    FUZZ_POLICIES,
    REDS,
    Cell,
    CellResult,
    ParityConfig,
    ParityResult,
    RecordedEpisode,
    concatenate_traces,
    parity_cells,
    run_parity,
)
from cagepool.sim.names import RED_ALIASES
from cagepool.sim.settings import Edition

MAX_MISMATCHES = 20  # printed
GREENS = {"both": (False, True), "off": (False,), "on": (True,)}


@dataclass(frozen=True, kw_only=True)
class Parity:
    """Replay games of CybORG natively with the same random draws, and count the mismatches.

    The exit code is 1 if any field of any step differs.
    """

    episodes: int = ParityConfig.episodes
    """Games per scenario and red agent, each with and without GreenAgent."""
    scenario: Annotated[
        tuple[str, ...],
        arg(
            metavar="SCENARIO ...",
            help="Scenario files, folders of them or suites. Default: CybORG's Scenario2.",
        ),
    ] = ParityConfig.scenario
    generate: int = ParityConfig.generate
    """Compare on this many random scenarios too, or instead of Scenario2."""
    red: Annotated[
        tuple[str, ...],
        arg(
            metavar=RED_LIST,
            help=f"Red agents, one or more of {', '.join((*REDS, *RED_ALIASES))}; given: a random "
            "red that plays what no agent plays. A scenario that an agent cannot play is left out.",
        ),
    ] = ParityConfig.red
    green: Literal["both", "off", "on"] = "both"
    """Play with GreenAgent (on), without it (off), or both."""
    blue: Annotated[
        str, arg(help=f"Defender: {', '.join(FUZZ_POLICIES)}, or mixed: each in turn.")
    ] = ParityConfig.blue
    edition: Edition | Literal["auto"] = "auto"
    """Edition that CybORG must have. auto: either of them."""
    seed: int = ParityConfig.seed
    """Random seed of the games."""
    max_steps: int = ParityConfig.max_steps
    """Steps per game."""
    checkout: Annotated[
        str | None,
        arg(help=f"Folder of CybORG. Default: {VARIABLE}, else the installed package."),
        NO_DEFAULT,
    ] = ParityConfig.checkout
    out: Annotated[Path | None, NO_DEFAULT] = None
    """Write the recorded games to this .npz file, as a trace (docs/traces.md)."""
    json: bool = False
    """Print JSON instead of a table."""


def parity(command: Parity) -> None:
    """Compare the simulators, print the mismatches, and exit with 1 if there are any."""
    config = ParityConfig(
        episodes=command.episodes,
        max_steps=command.max_steps,
        scenario=command.scenario,
        generate=command.generate,
        red=command.red,
        greens=GREENS[command.green],
        blue=command.blue,
        seed=command.seed,
        edition=command.edition,
        checkout=command.checkout,
    )
    if command.out and not command.out.parent.is_dir():
        raise ValueError(f"out must be in a folder that exists, got {command.out}")
    cells = parity_cells(config)
    scenarios = len({cell.scenario for cell in cells})
    if command.out and scenarios > 1:
        raise ValueError(f"out must be of one scenario, as a trace is, got {scenarios} scenarios")
    recordings: list[RecordedEpisode] = []
    try:
        result = _play_games(config, cells, recordings if command.out else None)
    except CybORGNotFoundError as error:
        raise ValueError(str(error)) from None
    if command.out and recordings:
        trace = concatenate_traces([recording.trace for recording in recordings])
        np.savez_compressed(command.out, **trace)  # type: ignore[arg-type] # stubs of NumPy
    console = CommandConsole()
    if command.json:
        console.out(json.dumps(_as_dict(config, result), indent=2))
    else:
        _print(console, config, result)
    if result.mismatches:
        sys.exit(EXIT_FAILURE)


def _play_games(
    config: ParityConfig, cells: list[Cell], recordings: list[RecordedEpisode] | None
) -> ParityResult:
    """Play the games with a progress bar; append them to `recordings` if given."""
    with progress_bars() as progress:
        bar = progress.add_task("playing CybORG", total=config.episodes * len(cells))

        def advance(recording: RecordedEpisode) -> None:
            progress.advance(bar)
            if recordings is not None and not recording.reused_pid:
                recordings.append(recording)

        return run_parity(config, cells, advance)


def _print(console: Console, config: ParityConfig, result: ParityResult) -> None:
    console.print(
        f"CybORG, edition {result.edition}, against its native replay; blue {config.blue}, "
        f"seed {config.seed}"
    )
    table = Table("red", "green", box=box.SIMPLE_HEAD, collapse_padding=True)
    for column in ("scenarios", "episodes", "steps", "set aside", "mismatches"):
        table.add_column(column, justify="right")
    for (red, green), results in _by_red_and_green(result).items():
        sums = [sum(numbers) for numbers in zip(*map(_counts, results), strict=True)]
        table.add_row(red, "on" if green else "off", *map(str, (len(results), *sums)))
    console.print(table)
    for cell, mismatch in result.mismatches[:MAX_MISMATCHES]:
        where = f"{cell.scenario.name}, {cell.red}, green {'on' if cell.green else 'off'}"
        console.print(f"{where}, {mismatch}")
    if len(result.mismatches) > MAX_MISMATCHES:
        console.print(f"and {len(result.mismatches) - MAX_MISMATCHES} more")


def _by_red_and_green(result: ParityResult) -> dict[tuple[str, bool], list[CellResult]]:
    groups = defaultdict(list)
    for cell, counts in result.cells.items():
        groups[cell.red, cell.green].append(counts)
    return groups


def _counts(result: CellResult) -> tuple[int, int, int, int]:
    return result.episodes, result.steps, result.set_aside, len(result.mismatches)


def _as_dict(config: ParityConfig, result: ParityResult) -> dict[str, object]:
    names = ("episodes", "steps", "set_aside", "mismatches")
    rows = [
        {**_cell_as_dict(cell), **dict(zip(names, _counts(counts), strict=True))}
        for cell, counts in result.cells.items()
    ]
    mismatches = [
        {**_cell_as_dict(cell), **mismatch._asdict()}
        for cell, mismatch in result.mismatches[:MAX_MISMATCHES]
    ]
    settings = {"edition": result.edition, "blue": config.blue, "seed": config.seed}
    return {**settings, "cells": rows, "first_mismatches": mismatches}


def _cell_as_dict(cell: Cell) -> dict[str, object]:
    scenario = {"scenario": cell.scenario.name, "scenario_hash": cell.scenario.hash}
    return {**scenario, "red": cell.red, "green": cell.green}

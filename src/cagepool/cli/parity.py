"""`cagepool parity`: compare the native simulator with CybORG, step by step."""

import json
import sys
from dataclasses import asdict, dataclass
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
from cagepool.cyborg.parity import (
    FUZZ_POLICIES,
    ParityConfig,
    ParityResult,
    RecordedEpisode,
    concatenate_traces,
    parity_cells,
    run_parity,
)
from cagepool.sim.names import OFFICIAL_REDS, RED_ALIASES
from cagepool.train.config import Edition

MAX_MISMATCHES = 20  # printed
GREENS = {"both": (False, True), "off": (False,), "on": (True,)}


@dataclass(frozen=True, kw_only=True)
class Parity:
    """Replay games of CybORG natively with the same random draws, and count the mismatches.

    The exit code is 1 if any field of any step differs.
    """

    episodes: int = ParityConfig.episodes
    """Games per red agent, each with and without GreenAgent."""
    red: Annotated[
        tuple[str, ...],
        arg(
            metavar=RED_LIST,
            help=f"Red agents, one or more of {', '.join((*OFFICIAL_REDS, *RED_ALIASES))}.",
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
        red=command.red,
        greens=GREENS[command.green],
        blue=command.blue,
        seed=command.seed,
        edition=command.edition,
        checkout=command.checkout,
    )
    if command.out and not command.out.parent.is_dir():
        raise ValueError(f"out must be in a folder that exists, got {command.out}")
    recordings: list[RecordedEpisode] = []
    try:
        result = _play_games(config, recordings if command.out else None)
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


def _play_games(config: ParityConfig, recordings: list[RecordedEpisode] | None) -> ParityResult:
    """Play the games with a progress bar; append them to `recordings` if given."""
    with progress_bars() as progress:
        bar = progress.add_task("playing CybORG", total=config.episodes * len(parity_cells(config)))

        def advance(recording: RecordedEpisode) -> None:
            progress.advance(bar)
            if recordings is not None and not recording.reused_pid:
                recordings.append(recording)

        return run_parity(config, advance)


def _print(console: Console, config: ParityConfig, result: ParityResult) -> None:
    console.print(
        f"CybORG, edition {result.edition}, against its native replay; blue {config.blue}, "
        f"seed {config.seed}"
    )
    table = Table("red", "green", box=box.SIMPLE_HEAD)
    for column in ("episodes", "steps", "set aside", "mismatches"):
        table.add_column(column, justify="right")
    for cell, counts in result.cells.items():
        numbers = (counts.episodes, counts.steps, counts.set_aside, len(counts.mismatches))
        table.add_row(cell.red, "on" if cell.green else "off", *map(str, numbers))
    console.print(table)
    for cell, mismatch in result.mismatches[:MAX_MISMATCHES]:
        console.print(f"{cell.red}, green {'on' if cell.green else 'off'}, {mismatch}")
    if len(result.mismatches) > MAX_MISMATCHES:
        console.print(f"and {len(result.mismatches) - MAX_MISMATCHES} more")


def _as_dict(config: ParityConfig, result: ParityResult) -> dict[str, object]:
    rows = [
        {
            **asdict(cell),
            "episodes": counts.episodes,
            "steps": counts.steps,
            "set_aside": counts.set_aside,
            "mismatches": len(counts.mismatches),
        }
        for cell, counts in result.cells.items()
    ]
    mismatches = [
        {**asdict(cell), **mismatch._asdict()}
        for cell, mismatch in result.mismatches[:MAX_MISMATCHES]
    ]
    settings = {"edition": result.edition, "blue": config.blue, "seed": config.seed}
    return {**settings, "cells": rows, "first_mismatches": mismatches}

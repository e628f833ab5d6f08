"""`cagepool parity`: is the native game still CybORG's?"""

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

from cagepool.cli.display import CommandConsole, progress_bars
from cagepool.cyborg import VARIABLE, CybORGNotFoundError
from cagepool.cyborg.parity import BLUES, ParityResult, ParityTrial, Recording, cells, joined
from cagepool.cyborg.parity import play as play_trial
from cagepool.sim.names import OFFICIAL_REDS, RED_ALIASES

DIFFERENT = 1
SHOWN = 20  # mismatches that are printed
GREENS = {"both": (False, True), "off": (False,), "on": (True,)}


@dataclass(frozen=True, kw_only=True)
class Parity:
    """Play CybORG, replay its draws natively, and count the fields that differ: none may."""

    episodes: int = ParityTrial.episodes
    """Games against each red, with green and without."""
    red: Annotated[
        tuple[str, ...], arg(help=f"Red agents: {', '.join((*OFFICIAL_REDS, *RED_ALIASES))}.")
    ] = ParityTrial.red
    green: Literal["both", "off", "on"] = "both"
    """Whether GreenAgent scans hosts."""
    blue: Annotated[str, arg(help=f"The defender: {', '.join(BLUES)}; mixed: they take turns.")] = (
        ParityTrial.blue
    )
    edition: str = ParityTrial.edition
    """What CybORG must play: 2.1, leaderboard, or auto for whatever it plays."""
    seed: int = ParityTrial.seed
    """Decides all luck: the same seed plays the same games."""
    max_steps: int = ParityTrial.max_steps
    """Steps of a game."""
    checkout: Annotated[
        str | None, arg(help=f"Folder of CybORG, if neither {VARIABLE} names it nor pip has it.")
    ] = ParityTrial.checkout
    out: Path | None = None
    """Write what was recorded to this .npz file, as a trace (docs/traces.md)."""
    json: bool = False
    """Print JSON instead of a table."""


def parity(command: Parity) -> None:
    """Compare, print what came of it, and exit with 1 if anything differs."""
    trial = ParityTrial(
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
    recordings: list[Recording] = []
    try:
        result = _played(trial, recordings if command.out else None)
    except CybORGNotFoundError as error:
        raise ValueError(str(error)) from None
    if command.out and recordings:
        trace = joined([one.trace for one in recordings])
        np.savez_compressed(command.out, **trace)  # type: ignore[arg-type] # knows one keyword
    console = CommandConsole()
    if command.json:
        console.out(json.dumps(_as_dict(trial, result), indent=2))
    else:
        _print(console, trial, result)
    if result.faults:
        sys.exit(DIFFERENT)


def _played(trial: ParityTrial, kept: list[Recording] | None) -> ParityResult:
    """Play with a bar that shows how far it is, if somebody may be looking."""
    with progress_bars() as progress:
        bar = progress.add_task("playing CybORG", total=trial.episodes * len(cells(trial)))

        def advance(recording: Recording) -> None:
            progress.advance(bar)
            if kept is not None and not recording.reused_pid:
                kept.append(recording)

        return play_trial(trial, advance)


def _print(console: Console, trial: ParityTrial, result: ParityResult) -> None:
    console.print(
        f"CybORG, edition {result.edition}, and its native replay; blue {trial.blue}, "
        f"seed {trial.seed}"
    )
    table = Table("red", "green", box=box.SIMPLE_HEAD)
    for column in ("episodes", "steps", "set aside", "mismatches"):
        table.add_column(column, justify="right")
    for cell, tally in result.tallies.items():
        counts = (tally.episodes, tally.steps, tally.set_aside, len(tally.faults))
        table.add_row(cell.red, "on" if cell.green else "off", *map(str, counts))
    console.print(table)
    for cell, fault in result.faults[:SHOWN]:
        console.print(f"{cell.red}, green {'on' if cell.green else 'off'}, {fault}")
    if len(result.faults) > SHOWN:
        console.print(f"and {len(result.faults) - SHOWN} more")


def _as_dict(trial: ParityTrial, result: ParityResult) -> dict[str, object]:
    counts = [
        {
            **asdict(cell),
            "episodes": tally.episodes,
            "steps": tally.steps,
            "set_aside": tally.set_aside,
            "mismatches": len(tally.faults),
        }
        for cell, tally in result.tallies.items()
    ]
    shown = [{**asdict(cell), **fault._asdict()} for cell, fault in result.faults[:SHOWN]]
    settings = {"edition": result.edition, "blue": trial.blue, "seed": trial.seed}
    return {**settings, "cells": counts, "first_mismatches": shown}

"""`cagepool bench`: measure, print a table, write JSON."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from tyro.conf import Positional, arg

from cagepool.bench.engine import EngineConfig, measure_engine
from cagepool.bench.measure import Pace

QUICK = Pace(repetitions=3, seconds=0.02)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Measure speed: contenders take turns in one run; median and quartiles are shown."""

    what: Positional[Literal["engine"]] = "engine"
    """What to measure."""
    quick: bool = False
    """Under a minute, and rough."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """JSON file to write."""
    other_build: Annotated[Path | None, arg(metavar="FOLDER")] = None
    """Folder with another build of cagepool to compare with."""
    cyborg_python: str = sys.executable
    """A Python that can import CybORG, to compare with."""


def bench(command: Bench) -> None:
    """Measure speed, print a table and write JSON."""
    if command.out is not None and not command.out.parent.is_dir():
        raise ValueError(f"out must be a file in a folder that exists, got {command.out}")
    config = EngineConfig(
        pace=QUICK if command.quick else Pace(),
        other_build=command.other_build,
        cyborg_python=command.cyborg_python,
    )
    result = _measured(config)
    if command.out is not None:
        command.out.write_text(json.dumps(result, indent=1) + "\n")
    _print(Console(highlight=False), result)


def _measured(config: EngineConfig) -> Any:
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("measuring", total=None)

        def show(group: str, done: int, total: int) -> None:
            progress.update(bar, description=group, completed=done, total=total)

        return measure_engine(config, show)


def _print(console: Console, result: Any) -> None:
    table = Table("group", "what", "settings", "ns a step", "steps/s", box=box.SIMPLE_HEAD)
    for column in table.columns[3:]:
        column.justify = "right"
    for group, rows in result["groups"].items():
        for row in rows:
            cost = row["nanoseconds_per_step"]
            known = ("name", "nanoseconds_per_step", "steps_per_second")
            settings = ", ".join(f"{key} {row[key]}" for key in row if key not in known)
            low, high = cost["quartiles"]
            shown = f"{cost['median']:.1f} ({low:.1f}-{high:.1f})"
            table.add_row(group, row["name"], settings, shown, f"{row['steps_per_second']:,}")
        table.add_section()
    console.print(table)
    for name, value in result["ratios"].items():
        console.print(f"{name}: {value:,.3g}")

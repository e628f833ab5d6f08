"""`cagepool bench`: measure, print a table, write JSON."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from rich import box
from rich.console import Console
from rich.table import Column, Table
from tyro.conf import Positional, arg

from cagepool.bench.catalogue import BENCHES, Name, Options, run
from cagepool.bench.measure import Measurement
from cagepool.bench.result import Result
from cagepool.cli.progress import progress_bars

ABOUT = "; ".join(f"{name}: {entry.about}" for name, entry in BENCHES.items())

WORTH_TELLING = 0.1  # share of the machine that others took


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Measure speed: contenders take turns in one run; median and quartiles are shown."""

    what: Annotated[Positional[Name | Literal["all"]], arg(help=f"What to measure. {ABOUT}.")] = (
        "all"
    )
    quick: bool = False
    """Under a minute, and rough."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """JSON file to write; of `all`, a folder for one file each."""
    other_build: Annotated[Path | None, arg(metavar="FOLDER")] = None
    """Folder with another build of cagepool to compare with."""
    cyborg_python: Annotated[str | None, arg(metavar="PYTHON")] = None
    """A Python that can import CybORG, to compare with; none: this one, if it can."""

    @property
    def options(self) -> Options:
        """What the benches are told."""
        return Options(
            quick=self.quick, other_build=self.other_build, cyborg_python=self.cyborg_python
        )


def bench(command: Bench) -> None:
    """Measure speed, print tables and write JSON."""
    _check(command)
    console = Console(highlight=False)
    for name, entry in BENCHES.items():
        if command.what not in (name, "all"):
            continue
        if obstacle := entry.obstacle():
            console.print(f"{name} is left out: it {obstacle}\n")
            continue
        result = _measured(name, command.options)
        if command.out is not None:
            file = command.out / f"{name}.json" if command.what == "all" else command.out
            file.write_text(json.dumps(result.as_dict(), indent=1) + "\n")
        _print(console, result)


def _check(command: Bench) -> None:
    """Refuse before anything is measured."""
    out = command.out
    if command.what == "all":
        if out is not None and not out.is_dir():
            raise ValueError(f"out must be a folder that exists, got {out}")
        return
    if obstacle := BENCHES[command.what].obstacle():
        raise ValueError(f"{command.what} {obstacle}")
    if out is not None and (out.is_dir() or not out.parent.is_dir()):
        raise ValueError(f"out must be a file in a folder that exists, got {out}")


def _measured(name: Name, options: Options) -> Result:
    with progress_bars() as progress:
        bar = progress.add_task("measuring", total=None)

        def show(group: str, done: int, total: int) -> None:
            progress.update(bar, description=f"{name}: {group}", completed=done, total=total)

        return run(name, options, show)


def _print(console: Console, result: Result) -> None:
    where = result.machine
    load = f"load {where['load']} before and {result.load_after} after"
    console.print(f"{where['processor']}, {where['cores']} cores, {load}")
    if result.busy and result.busy.busy_elsewhere > WORTH_TELLING:
        share = result.busy.busy_elsewhere
        console.print(f"others kept {share:.0%} of the machine busy meanwhile", style="yellow")
    console.print()
    for group, measurements in result.groups.items():
        _print_group(console, group, measurements)
    ratios = Table(Column(justify="right"), Column(), box=None, show_header=False)
    for name, value in result.ratios.items():
        ratios.add_row(f"{value:,.0f}" if value >= 1000 else f"{value:.3g}", name)
    console.print(ratios)


def _print_group(console: Console, group: str, measurements: list[Measurement]) -> None:
    """A table of what differs within the group, under what does not."""
    names = dict.fromkeys(name for one in measurements for name in one.settings)
    values = {name: [one.settings.get(name, "") for one in measurements] for name in names}
    differing = [name for name in names if len(set(values[name])) > 1]
    common = [f"{name} {values[name][0]}" for name in names if name not in differing]
    console.print(f"{group}: {', '.join(common)}", style="bold")
    columns = [Column(name, justify="right") for name in (*differing, "ns a step", "steps/s")]
    table = Table("what", *columns, box=box.SIMPLE_HEAD)
    for one in measurements:
        settings = (str(one.settings.get(name, "")) for name in differing)
        low, middle, high = map(_shown, one.quartiles)
        rate = _shown(one.steps_per_second)
        table.add_row(one.name, *settings, f"{middle} ({low}-{high})", rate)
    console.print(table)


def _shown(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:,.1f}M"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"

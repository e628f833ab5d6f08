"""`cagepool bench`: measure, print a table, write JSON."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

from rich import box
from rich.console import Console
from rich.table import Column, Table
from tyro.conf import Positional, arg

from cagepool.bench.cyborg import CyborgConfig, measure_cyborg
from cagepool.bench.engine import EngineConfig, measure_engine
from cagepool.bench.measure import Measurement, Pace
from cagepool.bench.result import Result
from cagepool.bench.workers import WorkersConfig, measure_workers
from cagepool.cli.progress import progress_bars

QUICK = Pace(repetitions=3, seconds=0.02)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Measure speed: contenders take turns in one run; median and quartiles are shown."""

    what: Positional[Literal["engine", "workers", "cyborg", "train"]] = "engine"
    """What to measure: the native games, worker processes, CybORG in worker processes, or whole
    training."""
    quick: bool = False
    """Under a minute, and rough."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """JSON file to write."""
    other_build: Annotated[Path | None, arg(metavar="FOLDER")] = None
    """Folder with another build of cagepool to compare with."""
    cyborg_python: Annotated[str | None, arg(metavar="PYTHON")] = None
    """A Python that can import CybORG, to compare with; none: this one, if it can."""


def bench(command: Bench) -> None:
    """Measure speed, print a table and write JSON."""
    if command.out is not None and (command.out.is_dir() or not command.out.parent.is_dir()):
        raise ValueError(f"out must be a file in a folder that exists, got {command.out}")
    result = _measured(command)
    if command.out is not None:
        command.out.write_text(json.dumps(result.as_dict(), indent=1) + "\n")
    _print(Console(highlight=False), result)


def _measured(command: Bench) -> Result:
    with progress_bars() as progress:
        bar = progress.add_task("measuring", total=None)

        def show(group: str, done: int, total: int) -> None:
            progress.update(bar, description=group, completed=done, total=total)

        if command.what == "workers":
            few = WorkersConfig(pace=QUICK, sizes=(1, 20), waiting=10)
            return measure_workers(few if command.quick else WorkersConfig(), show)
        if command.what == "cyborg":
            small = CyborgConfig(pace=QUICK, sizes=(4,))
            return measure_cyborg(small if command.quick else CyborgConfig(), show)
        if command.what == "train":
            return _measured_training(show, quick=command.quick)
        config = EngineConfig(
            pace=QUICK if command.quick else Pace(),
            other_build=command.other_build,
            cyborg_python=command.cyborg_python,
        )
        return measure_engine(config, show)


def _measured_training(show: Callable[[str, int, int], None], *, quick: bool) -> Result:
    if find_spec("torch") is None:
        raise ValueError("training needs torch: pip install 'cagepool[train]'")
    # Imported late: PyTorch takes a second to load.
    from cagepool.bench.train import BenchTrainConfig, measure_training  # noqa: PLC0415

    small = BenchTrainConfig(pace=QUICK, sb3_minibatches=(2500,))
    return measure_training(small if quick else BenchTrainConfig(), show)


def _print(console: Console, result: Result) -> None:
    where = result.machine
    load = f"load {where['load']} before and {result.load_after} after"
    console.print(f"{where['processor']}, {where['cores']} cores, {load}\n")
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

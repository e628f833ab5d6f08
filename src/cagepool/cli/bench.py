"""`cagepool bench`: run benches, print tables, write JSON and a page, compare with earlier runs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Literal

from rich import box
from rich.console import Console
from rich.table import Column, Table
from tyro.conf import Positional, arg

from cagepool import _optional
from cagepool.bench import BENCHES, BenchName, run_bench
from cagepool.bench.schema import (
    BenchResult,
    Change,
    Comparison,
    Measurement,
    compare_results,
    read_result,
    split_settings,
    write_result,
)
from cagepool.cli.args import NO_DEFAULT
from cagepool.cli.display import CommandConsole, progress_bars

NOTABLE_LOAD = 0.1  # share of the machine that other processes used
VERDICT_STYLES = {"slower": "red", "faster": "green", "no change": ""}

SUMMARIES = "; ".join(f"{name}: {entry.summary}" for name, entry in BENCHES.items())


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Measure throughput: contenders are timed interleaved; median and quartiles are printed."""

    name: Annotated[
        Positional[BenchName | Literal["all"]],
        arg(help=f"Bench to run. {SUMMARIES}; all: those whose libraries are installed."),
    ] = "all"
    quick: bool = False
    """Run for less than a minute in total; less precise."""
    out: Annotated[Path | None, arg(metavar="FILE"), NO_DEFAULT] = None
    """JSON file to write; for `all`, a folder that gets one file per bench."""
    page: Annotated[Path | None, arg(metavar="FILE"), NO_DEFAULT] = None
    """HTML page to write, with tables and plots."""
    compare: Annotated[tuple[Path, ...], arg(metavar="OLD [NEW]"), NO_DEFAULT] = ()
    """Earlier JSON file, or folder of them, to compare with. Two: compare them, measure nothing."""


def bench(command: Bench) -> None:
    """Run benches, print tables, write files, and print the changes since an earlier run."""
    with _optional.require("a bench", "bench", "psutil", "scipy"):
        console = CommandConsole()
    earlier = [_read(path) for path in command.compare]
    if len(earlier) > 1:
        _compare_files(console, earlier)
        return
    names = _wanted(command, earlier[0] if earlier else {})
    _check_out(command)
    results = []
    for name, result in _run_all(console, names, quick=command.quick):
        if command.out is not None:
            file = command.out / f"{name}.json" if command.name == "all" else command.out
            write_result(result, file)
        print_bench_result(console, result)
        if earlier and name in earlier[0]:
            print_comparison(console, compare_results(earlier[0][name], result))
        results.append(result)
    if command.page is not None:
        _report().write_bench_report(results, command.page)


def _report() -> ModuleType:
    with _optional.require("a page", "report", "matplotlib", "jinja2"):
        from cagepool import report  # noqa: PLC0415 - needs the libraries

        return report


def _read(path: Path) -> dict[str, BenchResult]:
    """Read the results of a file or a folder, by bench."""
    files = [path]
    if path.is_dir():
        files = [file for name in BENCHES if (file := path / f"{name}.json").exists()]
    if not files:
        raise ValueError(f"compare must be a JSON file or a folder with some, got {path}")
    results = map(read_result, files)
    return {result.bench: result for result in results}


def _compare_files(console: Console, earlier: list[dict[str, BenchResult]]) -> None:
    if len(earlier) > 2:
        raise ValueError(f"compare takes one or two files, got {len(earlier)}")
    old, new = earlier
    common = [name for name in old if name in new]
    if not common:
        raise ValueError(
            f"both files must be of the same bench, got {', '.join(old)} and {', '.join(new)}"
        )
    for name in common:
        print_comparison(console, compare_results(old[name], new[name]))


def _wanted(command: Bench, earlier: Mapping[str, BenchResult]) -> list[BenchName]:
    """Return the benches to run: the named one, else those of the earlier files, else all."""
    if command.name != "all":
        if earlier and command.name not in earlier:
            raise ValueError(
                f"compare must be a result of {command.name}, got one of {', '.join(earlier)}"
            )
        return [command.name]
    names = [name for name in BENCHES if not earlier or name in earlier]
    if not names:
        raise ValueError(f"compare must be a result of a bench, got one of {', '.join(earlier)}")
    return names


def _check_out(command: Bench) -> None:
    """Check the output files before anything is measured."""
    out, page = command.out, command.page
    if page is not None:
        _report()
        if page.is_dir() or not page.parent.is_dir():
            raise ValueError(f"page must be a file in a folder that exists, got {page}")
    if out is None:
        return
    if command.name == "all" and not out.is_dir():
        raise ValueError(f"out must be a folder that exists, got {out}")
    if command.name != "all" and (out.is_dir() or not out.parent.is_dir()):
        raise ValueError(f"out must be a file in a folder that exists, got {out}")


def _run_all(
    console: Console, names: list[BenchName], *, quick: bool
) -> Iterator[tuple[BenchName, BenchResult]]:
    """Run one bench after the other; of several, skip those whose libraries are missing."""
    runnable = []
    for name in names:
        missing = BENCHES[name].missing_library()
        if missing and len(names) == 1:
            raise ValueError(f"{name} {missing}")
        if missing:
            console.print(f"{name} is skipped: it {missing}")
        else:
            runnable.append(name)
    for number, name in enumerate(runnable):
        yield name, _run_with_progress(name, number, len(runnable), quick=quick)


def _run_with_progress(name: BenchName, number: int, count: int, *, quick: bool) -> BenchResult:
    """Run one of `count` benches with a progress bar, and one for all benches if there are more."""
    with progress_bars() as progress:
        total_bar = progress.add_task("all", total=count, completed=number, visible=count > 1)
        bar = progress.add_task(name, total=None)

        def show(group: str, finished: int, total: int) -> None:
            progress.update(bar, description=f"{name}: {group}", completed=finished, total=total)
            progress.update(total_bar, completed=number + finished / max(total, 1))

        return run_bench(name, BENCHES[name], show, quick=quick)


def print_bench_result(console: Console, result: BenchResult) -> None:
    """Print the machine and its load, one table per group, and the ratios."""
    machine = result.machine
    load = f"load {machine['load']} before and {result.load_after} after"
    console.print(f"\n{machine['processor']}, {machine['cores']} cores, {load}")
    if result.busy_elsewhere and result.busy_elsewhere > NOTABLE_LOAD:
        share = f"{result.busy_elsewhere:.0%}"
        console.print(f"other processes used {share} of the machine meanwhile", style="yellow")
    console.print()
    for group, measurements in result.groups.items():
        _print_group(console, group, measurements)
    ratios = Table(Column(justify="right"), Column(), box=None, show_header=False)
    for name, value in result.ratios.items():
        ratios.add_row(f"{value:,.0f}" if value >= 1000 else f"{value:.3g}", name)
    console.print(ratios)


def _print_group(console: Console, group: str, measurements: list[Measurement]) -> None:
    """Print the common settings as heading, and one row per measurement with the others."""
    differing, common = split_settings([measurement.settings for measurement in measurements])
    console.print(f"{group}: {common}", style="bold")
    columns = [Column(name, justify="right") for name in (*differing, "ns per step", "steps/s")]
    table = Table(Column("contender", no_wrap=True), *columns, box=box.SIMPLE_HEAD)
    for measurement in measurements:
        settings = (str(measurement.settings.get(name, "")) for name in differing)
        cost = measurement.nanoseconds_per_step
        low, high = map(_format_figure, cost.quartiles)
        rate = _format_figure(measurement.steps_per_second)
        table.add_row(
            measurement.name, *settings, f"{_format_figure(cost.median)} ({low}-{high})", rate
        )
    console.print(table)


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Print significant changes, and the number of contenders without one."""
    for name, (old, new) in comparison.machine.items():
        console.print(f"{name} was {old}, now {new}: a possible cause of changes", style="yellow")
    changed = [change for change in comparison.changes if change.verdict != "no change"]
    if changed:
        console.print(_changes_table(changed))
    unchanged = len(comparison.changes) - len(changed)
    console.print(f"{_contenders(unchanged)}: no change{_noise_levels(comparison.changes)}")
    for label, count in (("removed", len(comparison.removed)), ("added", len(comparison.added))):
        if count:
            console.print(f"{_contenders(count)}: {label}, nothing to compare with")


def _changes_table(changes: list[Change]) -> Table:
    columns = [Column(name, justify="right") for name in ("before", "after", "change", "noise")]
    table = Table("contender", *columns, box=box.SIMPLE_HEAD)
    for change in changes:
        settings = "".join(f", {name} {value}" for name, value in change.settings.items())
        label = f"{change.group}: {change.name}{settings}"
        verdict = f"{abs(change.change):.0%} {change.verdict}"
        figures = (_format_figure(change.before_ns), _format_figure(change.after_ns))
        style = VERDICT_STYLES[change.verdict]
        table.add_row(label, *figures, verdict, f"{change.noise:.0%}", style=style)
    return table


def _noise_levels(changes: list[Change]) -> str:
    """Median and maximum of the smallest change that would have been detected."""
    noises = sorted(change.noise for change in changes if change.verdict == "no change")
    if not noises:
        return ""
    median, maximum = (_format_noise(noises[index]) for index in (len(noises) // 2, -1))
    return f" beyond noise ({median} for most, {maximum} at worst)"


def _format_noise(value: float) -> str:
    return f"{value:.0%}" if value < 10 else "anything"


def _contenders(count: int) -> str:
    return f"{count} contender{'' if count == 1 else 's'}"


def _format_figure(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:,.1f}M"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"

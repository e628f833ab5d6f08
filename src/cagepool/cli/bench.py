"""`cagepool bench`: measure, print tables, write JSON and a page, tell what has changed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal

from rich.console import Console
from tyro.conf import Positional, arg

from cagepool import _optional
from cagepool.bench.compare import compared
from cagepool.bench.registry import BENCHES, Name, Options, run
from cagepool.bench.result import Result
from cagepool.bench.schema import read_result
from cagepool.cli.display import CommandConsole, progress_bars
from cagepool.cli.tables import print_bench_result, print_comparison

ABOUT = "; ".join(f"{name}: {entry.about}" for name, entry in BENCHES.items())


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Measure speed: contenders take turns in one run; median and quartiles are shown."""

    what: Annotated[
        Positional[Name | Literal["all"]],
        arg(help=f"What to measure. {ABOUT}; all: each that can run here."),
    ] = "all"
    quick: bool = False
    """Under a minute, and rough."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """JSON file to write; of `all`, a folder for one file each."""
    page: Annotated[Path | None, arg(metavar="FILE")] = None
    """HTML page to write, with tables and plots."""
    compare: Annotated[tuple[Path, ...], arg(metavar="OLD [NEW]")] = ()
    """An earlier FILE, or FOLDER of them, to tell what has changed since, beyond noise; two: they
    are compared and nothing is measured."""
    other_build: Annotated[Path | None, arg(metavar="FOLDER")] = None
    """Folder with another build of cagepool to compare with."""
    cyborg_python: Annotated[str | None, arg(metavar="PYTHON")] = None
    """A Python that can import CybORG, to compare with; none: this one, if it can."""
    minicage: Annotated[Path | None, arg(metavar="FOLDER")] = None
    """Folder with MiniCAGE's package mini_CAGE, to compare with."""

    @property
    def options(self) -> Options:
        """What the benches are told."""
        return Options(
            quick=self.quick,
            other_build=self.other_build,
            cyborg_python=self.cyborg_python,
            minicage=self.minicage,
        )


def bench(command: Bench) -> None:
    """Measure speed, print tables, write JSON, and tell what has changed."""
    console = CommandConsole(markup=False)
    earlier = [_read(path) for path in command.compare]
    if len(earlier) > 1:
        _compare_files(console, earlier)
        return
    names = _wanted(command, earlier[0] if earlier else {})
    _check_out(command)
    contents = []
    for name, result in _measured(console, names, command.options):
        content = result.as_dict()
        if command.out is not None:
            file = command.out / _file(name) if command.what == "all" else command.out
            file.write_text(json.dumps(content, indent=1) + "\n")
        print_bench_result(console, result)
        if earlier and name in earlier[0]:
            print_comparison(console, compared(earlier[0][name], content))
        contents.append(content)
    if command.page is not None:
        _report().write_bench_report(contents, command.page)


def _report() -> ModuleType:
    with _optional.require("a page", "report", "matplotlib", "jinja2"):
        from cagepool import report  # noqa: PLC0415 - needs the libraries

        return report


def _file(name: str) -> str:
    """What the file of a bench is called in a folder for all."""
    return f"{name.replace('-', '_')}.json"


def _read(path: Path) -> dict[str, Any]:
    """Results by the names of their benches, of a file or of a folder."""
    files = [path / _file(name) for name in BENCHES] if path.is_dir() else [path]
    found = [read_result(file) for file in files if not path.is_dir() or file.exists()]
    for result in found:
        compared(result, result)  # refuses what cannot be compared before anything is measured
    if not found:
        raise ValueError(f"compare must be a file or a folder that has some, got {path}")
    return {result["bench"]: result for result in found}


def _compare_files(console: Console, earlier: list[dict[str, Any]]) -> None:
    if len(earlier) > 2:
        raise ValueError(f"compare takes one or two files, got {len(earlier)}")
    old, new = earlier
    both = [name for name in old if name in new]
    if not both:
        raise ValueError(
            f"both files must be of the same bench, got {', '.join(old)} and {', '.join(new)}"
        )
    for name in both:
        print_comparison(console, compared(old[name], new[name]))


def _wanted(command: Bench, earlier: dict[str, Any]) -> list[Name]:
    """What to measure; an earlier file says so where nobody else does."""
    if command.what != "all":
        if earlier and command.what not in earlier:
            raise ValueError(
                f"compare must be a result of {command.what}, got one of {', '.join(earlier)}"
            )
        return [command.what]
    names = [name for name in BENCHES if not earlier or name in earlier]
    if not names:
        raise ValueError(f"compare must be a result of a bench, got one of {', '.join(earlier)}")
    return names


def _check_out(command: Bench) -> None:
    """Refuse before anything is measured."""
    out, page = command.out, command.page
    if page is not None:
        _report()
        if page.is_dir() or not page.parent.is_dir():
            raise ValueError(f"page must be a file in a folder that exists, got {page}")
    if out is None:
        return
    if command.what == "all" and not out.is_dir():
        raise ValueError(f"out must be a folder that exists, got {out}")
    if command.what != "all" and (out.is_dir() or not out.parent.is_dir()):
        raise ValueError(f"out must be a file in a folder that exists, got {out}")


def _measured(
    console: Console, names: list[Name], options: Options
) -> Iterator[tuple[Name, Result]]:
    """One after the other; those that cannot run here are left out, unless there is no other."""
    if len(names) == 1 and (obstacle := BENCHES[names[0]].obstacle()):
        raise ValueError(f"{names[0]} {obstacle}")
    able = []
    for name in names:
        if obstacle := _obstacle(name, several=len(names) > 1, quick=options.quick):
            console.print(f"{name} is left out: it {obstacle}")
        else:
            able.append(name)
    for number, name in enumerate(able):
        yield name, _one(name, options, number, len(able))


def _obstacle(name: Name, *, several: bool, quick: bool) -> str | None:
    if several and quick and BENCHES[name].slow:
        return "takes long to start; name it to measure it quickly"
    return BENCHES[name].obstacle()


def _one(name: Name, options: Options, number: int, count: int) -> Result:
    """Measure one of so many, under a bar for it and, if there are several, one for all."""
    with progress_bars() as progress:
        every = progress.add_task("all", total=count, completed=number, visible=count > 1)
        bar = progress.add_task(name, total=None)

        def show(group: str, done: int, total: int) -> None:
            progress.update(bar, description=f"{name}: {group}", completed=done, total=total)
            progress.update(every, completed=number + done / max(total, 1))

        return run(name, options, show)

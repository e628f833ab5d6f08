"""`cagepool report`: HTML report of runs, studies, searches or benchmarks."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from cagepool import _optional
from cagepool.cli.args import NO_DEFAULT

FILE_NAME = "report.html"


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
    out = command.out or folder / FILE_NAME
    write_report(command.runs, out)
    print(out)

"""`cagepool report`: one page about one or several runs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from cagepool import _optional

PAGE = "report.html"


@dataclass(frozen=True, kw_only=True)
class Report:
    """Write one HTML page about runs, with scores, curves and a replay, or about benches."""

    runs: Annotated[Positional[tuple[Path, ...]], arg(metavar="RUN...")]
    """Run folders; several are compared. Or JSON files of `cagepool bench`."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """The page; none: report.html in the run's folder, or here if there are several."""


def report(command: Report) -> None:
    """Write one HTML page about runs, and say where it is."""
    with _optional.needed("a report", "report", "matplotlib", "jinja2"):
        from cagepool.report import write_report  # noqa: PLC0415 - needs the libraries

    alone = len(command.runs) == 1 and command.runs[0].is_dir()
    folder = command.runs[0] if alone else Path()
    out = command.out or folder / PAGE
    write_report(command.runs, out)
    print(out)

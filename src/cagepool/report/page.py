"""The page: one HTML file that needs nothing else."""

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from cagepool.bench.schema import read_result
from cagepool.report import bench_data, benchplots, breakdowns, curves, network, orders, tables
from cagepool.report.colours import series
from cagepool.report.run_data import Folder, read_folders
from cagepool.report.search_data import SearchFolder, is_search, read_search
from cagepool.runs import replace_file

STYLES = ("page.css", "replay.css")
SCRIPTS = ("network.js", "chart.js", "replay.js")
TEMPLATES = ("base.html", "page.html", "parts.html", "replay.html", "search.html", "bench.html")


def write_report(paths: Sequence[Path], out: Path) -> None:
    """Write one page about run folders or results of benches; a reader never sees half of it.

    Raises:
        ValueError: a folder cannot be read, or the page not be written.
    """
    if not paths:
        raise ValueError("a report must have at least one run, got none")
    files = [path for path in paths if path.suffix == ".json"]
    if files and len(files) < len(paths):
        raise ValueError(f"results of benches must be reported by themselves, got {files[0]}")
    if files:
        write_benches([read_result(path) for path in files], out)
        return
    searches = [path for path in paths if is_search(path)]
    if searches and len(paths) > 1:
        raise ValueError(f"a search must be reported by itself, got {searches[0]} among others")
    page = render_search(read_search(paths[0])) if searches else render(read_folders(paths))
    _write(page, out)


def write_benches(results: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Write one page about results of benches, each as `read_result` gives it.

    Raises:
        ValueError: the page cannot be written.
    """
    _write(render_benches([bench_data.benched(result) for result in results]), out)


def _write(page: str, out: Path) -> None:
    try:
        replace_file(out, page.encode())
    except OSError as error:
        raise ValueError(f"{out} must be a file that can be written, but: {error}") from None


def render_benches(results: Sequence[bench_data.Benched]) -> str:
    """The page about results of benches."""
    return (
        _environment()
        .get_template("bench.html")
        .render(
            style=Markup(_resource(STYLES[0])),
            benches=results,
            series=series,
            bars_plot=benchplots.bars_plot,
            rate_plot=benchplots.rate_plot,
            efficiency_plot=benchplots.efficiency_plot,
            memory_plot=benchplots.memory_plot,
        )
    )


def render_search(found: SearchFolder) -> str:
    """The page about a search."""
    return (
        _environment()
        .get_template("search.html")
        .render(
            style=Markup(_resource(STYLES[0])),
            search=found,
            ranking_plot=orders.ranking_plot,
            path_plot=orders.path_plot,
            belief_plot=orders.belief_plot,
            compliance_plot=orders.compliance_plot,
            settings=[(name, tables.shown(value)) for name, value in found.settings.items()],
        )
    )


def render(folders: Sequence[Folder]) -> str:
    """The page about these runs."""
    evaluated = [folder for folder in folders if folder.evaluation]
    return (
        _environment()
        .get_template("page.html")
        .render(
            style=Markup("\n".join(map(_resource, STYLES))),
            script=Markup("\n".join(map(_resource, SCRIPTS))),
            folders=folders,
            overviews=[tables.overview(folder, number) for number, folder in enumerate(folders)],
            trained=[folder for folder in folders if folder.metrics.get("update")],
            return_plot=curves.return_plot,
            panels=curves.panels,
            score_tables=tables.score_tables(folders),
            loss_bars=breakdowns.loss_bars(folders),
            causes=breakdowns.CAUSES,
            heat_maps={
                f.name: breakdowns.heat_maps(f.evaluation) for f in evaluated if f.evaluation
            },
            time_bars=breakdowns.time_bars(folders),
            parts=breakdowns.PARTS,
            hidden_seconds=breakdowns.hidden_seconds,
            settings=tables.settings(folders),
            replay=network.replay(folders),
        )
    )


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.DictLoader({name: _resource(name) for name in TEMPLATES}),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(signed=_signed, duration=_duration, amount=_amount)
    return environment


def _resource(name: str) -> str:
    return (resources.files("cagepool.report") / name).read_text(encoding="utf-8")


def _signed(value: float, digits: int = 2) -> str:
    """A number with a true minus sign; no minus before nothing."""
    text = f"{value:,.{digits}f}"
    return text.replace("-", "" if float(text.replace(",", "")) == 0 else "\N{MINUS SIGN}")


def _amount(value: float) -> str:
    """A number of any size, in about three digits."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:,.1f}M"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"

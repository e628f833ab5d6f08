"""Render the report pages; each page is one HTML file that needs no other file."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup

from cagepool.bench.schema import BenchResult, read_result
from cagepool.render.plan import (
    COLORS,
    FONT_SIZES,
    ScenarioPlan,
    drawing_description,
)
from cagepool.report import plots, study_data, study_plots, tables
from cagepool.report.data import (
    BenchData,
    RunData,
    SearchData,
    is_search_folder,
    read_runs,
    read_search,
    to_bench_data,
)
from cagepool.report.study_data import is_study_folder
from cagepool.report.study_plots import StudyPlot
from cagepool.report.svg import series_name, to_file
from cagepool.runs import flat_settings, replace_file
from cagepool.runs.schema import RecordedScenario
from cagepool.runs.study_schema import EditionResults, ResultsFile, read_results


def write_report(paths: Sequence[Path], out: Path) -> None:
    """Write one page about run folders, about one search or study, or about results of benches.

    The file is replaced atomically.
    """
    if not paths:
        raise ValueError("a report must have at least one run, got none")
    files = [path for path in paths if path.suffix == ".json"]
    if files and len(files) < len(paths):
        raise ValueError(f"results of benches must be reported by themselves, got {files[0]}")
    if files:
        write_bench_report([read_result(path) for path in files], out)
        return
    studies = [path for path in paths if is_study_folder(path)]
    if studies and len(paths) > 1:
        raise ValueError(f"a study must be reported by itself, got {studies[0]} among others")
    if studies:
        name = paths[0].resolve().name
        _write(render_study(read_results(paths[0]), name), out)
        return
    searches = [path for path in paths if is_search_folder(path)]
    if searches and len(paths) > 1:
        raise ValueError(f"a search must be reported by itself, got {searches[0]} among others")
    page = render_search(read_search(paths[0])) if searches else render_runs(read_runs(paths))
    _write(page, out)


def write_bench_report(results: Sequence[BenchResult], out: Path) -> None:
    """Write one page about results of benches."""
    _write(render_benches([to_bench_data(result) for result in results]), out)


def render_runs(runs: Sequence[RunData]) -> str:
    """Render the page about one run or several runs."""
    return _render(
        "run.html",
        style=_style("page.css", "replay.css"),
        script=_static("drawing.js", "chart.js", "replay.js"),
        runs=runs,
        summaries=[tables.run_figures(run, number) for number, run in enumerate(runs)],
        trained=[run for run in runs if run.metrics.get("update")],
        return_plot=plots.return_plot,
        equal_runs=plots.equal_runs(runs),
        panel_plots=plots.panel_plots,
        score_tables=tables.score_tables(runs),
        loss_bars=tables.loss_bars(runs),
        causes=tables.CAUSES,
        heat_maps={run.name: tables.heat_maps(run.evaluation) for run in runs if run.evaluation},
        time_bars=tables.time_bars(runs),
        time_parts=tables.TIME_PARTS,
        overlapped_seconds=tables.overlapped_seconds,
        settings=tables.settings_table(runs),
        replay=replay_json(runs),
    )


def render_search(search: SearchData) -> str:
    """Render the page about a search."""
    return _render(
        "search.html",
        style=_style("page.css"),
        search=search,
        class_colors={each.name: series_name(number) for number, each in enumerate(search.classes)},
        ranking_plot=plots.ranking_plot,
        progress_plot=plots.progress_plot,
        prediction_plot=plots.prediction_plot,
        compliance_plot=plots.compliance_plot,
        settings=[
            (name, tables.format_value(value))
            for name, value in flat_settings(search.settings).items()
        ],
    )


def render_study(study: ResultsFile, name: str) -> str:
    """Render the page about a study."""
    settings, shared = study_data.settings_table(study)
    return _render(
        "study.html",
        style=_style("page.css", "study.css"),
        study=study,
        name=name,
        editions=[_study_edition(study, edition) for edition in study.editions],
        curves=study_plots.study_curves(study),
        keys=study_plots.study_keys(study).values(),
        settings=settings,
        shared=shared,
        causes=tables.CAUSES,
        data_url=_data_url,
        svg_document=svg_document,
    )


def svg_document(plot: StudyPlot) -> str:
    """A plot of a study as an SVG file, in the light colors of the page and with a legend."""
    return to_file(plot.document, _light_colors())


def _study_edition(study: ResultsFile, edition: EditionResults) -> dict[str, Any]:
    keys = study_plots.study_keys(study)
    return {
        "legend": [keys[setting.name] for setting in edition.settings],
        "intervals": study_plots.interval_plot(edition, keys),
        "profiles": study_plots.profile_plot(edition, keys),
        "scores": study_data.score_table(edition, study.study.protocol.target),
        "comparisons": study_data.comparison_table(edition),
        "seeds": study_data.seed_table(edition),
        "matrix": study_data.matrix_table(edition),
        "behavior": study_data.behavior_table(edition),
        "loss": study_data.loss_table(edition, tables.CAUSES),
        "loss_bars": tables.study_loss_bars(edition),
    }


def _data_url(kind: str, content: str) -> str:
    types = {"svg": "image/svg+xml", "csv": "text/csv", "tex": "application/x-tex"}
    return f"data:{types[kind]};base64,{base64.b64encode(content.encode()).decode()}"


def _light_colors() -> dict[str, str]:
    """Colors of the light page by the names of their variables."""
    light = {name: color for name, (color, _) in COLORS.items()}
    rules = str(_static("page.css")).partition("@media")[0]
    return dict(re.findall(r"--([a-z0-9_-]+): (#[0-9a-f]+)", rules)) | light


def render_benches(benches: Sequence[BenchData]) -> str:
    """Render the page about results of benches."""
    return _render(
        "bench.html",
        style=_style("page.css"),
        benches=benches,
        series_name=series_name,
        rate_plot=plots.rate_plot,
        rate_curves=plots.rate_curves,
        efficiency_curves=plots.efficiency_curves,
        memory_curves=plots.memory_curves,
    )


def replay_json(runs: Sequence[RunData]) -> Markup:
    """Scenarios and recorded games for static/replay.js, safe inside a script element.

    A game has the index of its scenario.
    """
    drawn: dict[str, dict[str, Any]] = {}
    games = []
    for run in runs:
        if run.games is None:
            continue
        for game in run.games.games:
            key = game.scenario.hash
            if key not in drawn:
                drawn[key] = drawing_description(_plan(game.scenario))
            recorded = {**msgspec.to_builtins(game), "run": run.name, "hosts": game.scenario.hosts}
            games.append({**recorded, "scenario": [*drawn].index(key)})
    text = json.dumps({"scenarios": [*drawn.values()], "games": games}, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def _plan(scenario: RecordedScenario) -> ScenarioPlan:
    return ScenarioPlan(
        zones=scenario.zones,
        links=scenario.links,
        foothold=scenario.foothold,
        targets=scenario.targets,
        defender=scenario.defender,
    )


def _write(page: str, out: Path) -> None:
    try:
        replace_file(out, page.encode())
    except OSError as error:
        raise ValueError(f"{out} must be a writable file: {error}") from None


def _render(template: str, **content: Any) -> str:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("cagepool.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(
        decimal=_format_decimal, duration=_format_duration, amount=_format_amount
    )
    return environment.get_template(template).render(**content)


def _static(*names: str) -> Markup:
    folder = resources.files("cagepool.report") / "static"
    return Markup("\n".join((folder / name).read_text(encoding="utf-8") for name in names))


def _style(*names: str) -> Markup:
    """Style sheets, after the CSS variables of the layout that they use."""
    light = {name: color for name, (color, _) in COLORS.items()}
    dark = {name: color for name, (_, color) in COLORS.items()}
    sizes = {f"size-{name}": f"{size:g}px" for name, size in FONT_SIZES.items()}
    return Markup(
        f"{_css_variables(light | sizes)}\n"
        f"@media (prefers-color-scheme: dark) {{ {_css_variables(dark)} }}\n"
    ) + _static(*names)


def _css_variables(values: Mapping[str, str]) -> str:
    return f":root {{ {' '.join(f'--{name}: {value};' for name, value in values.items())} }}"


def _format_decimal(value: float, digits: int = 2) -> str:
    """Fixed digits with a typographic minus sign; zero has no sign."""
    text = f"{value:,.{digits}f}"
    return text.replace("-", "" if float(text.replace(",", "")) == 0 else "\N{MINUS SIGN}")


def _format_amount(value: float) -> str:
    """About three significant digits for a number of any size."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:,.1f}M"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _format_duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"

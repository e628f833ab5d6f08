"""Write the figures of committed studies into docs/study-findings.md.

Run it as python -m benchmarks.study_pages; with --copy RUNS it first copies the results of the
studies that were run in that folder into benchmarks/studies.
"""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.blocks import fill_blocks, markdown_table
from cagepool.report import study_data
from cagepool.report.page import svg_document
from cagepool.report.study_data import DataTable
from cagepool.report.study_plots import StudyPlot, interval_plot, study_curves
from cagepool.runs.study_schema import (
    RESULTS,
    STUDY,
    Comparison,
    Curve,
    EditionResults,
    Estimate,
    ResultsFile,
    read_results,
)

STUDIES = Path(__file__).parent / "studies"
DOCS = Path(__file__).parents[1] / "docs"
PAGES = (DOCS / "study-findings.md",)
PICTURES = {  # by name of the file in docs: study, and name of the plot
    "study-ablation.svg": ("ablation", "intervals-2.1"),
}
GOOD_RETURN = -25.0  # of training episodes of 100 steps: what the steps to it are counted for
MIDDLE = 50  # percent of the training at which gradients are compared


def fill_page(text: str) -> str:
    """Fill every block `<!-- study: NAME TABLE [EDITION] -->`."""
    return fill_blocks(text, "study", _content)


def pictures() -> dict[str, str]:
    """SVG documents by the name of their file in docs."""
    drawn = {}
    for file, (study, name) in PICTURES.items():
        results = read_results(STUDIES / study)
        plots: list[StudyPlot] = [*study_curves(results), *map(interval_plot, results.editions)]
        drawn[file] = next(svg_document(plot) for plot in plots if plot.name == name)
    return drawn


def _content(block: str) -> str:
    study, table, *rest = block.split()
    results = read_results(STUDIES / study)
    edition = next(
        one for one in results.editions if one.edition == (rest or [results.editions[0].edition])[0]
    )
    if table == "budget":
        return _budget(results)
    if table == "scores":
        return _scores(edition)
    if table == "environments":
        return _environments(results)
    if table == "sentences":
        return "\n".join(f"* {one.sentence}" for one in edition.comparisons)
    tables = {"matrix": study_data.matrix_table, "behavior": study_data.behavior_table}
    return _markdown(tables[table](edition))


def _budget(results: ResultsFile) -> str:
    protocol, settings = results.study.protocol, results.study.settings
    hours, minutes = divmod(round(results.seconds / 60), 60)
    time = f"{hours} h {minutes} min" if hours else f"{minutes} min"
    return (
        f"{len(settings)} settings, {len(protocol.seeds)} seeds each, {results.episodes:,} "
        f"training episodes in all; {protocol.episodes:,} games per red and evaluation. The "
        f"trainings took {time}, summed over runs of one thread "
        f"({results.machine['processor']})."
    )


def _scores(edition: EditionResults) -> str:
    """Scores over seeds, with the comparison of each setting with the baseline."""
    compared = {one.first: one for one in edition.comparisons}
    header = ["", "IQM", "SD", "CVaR 5 %", "difference", "P(improvement)", ""]
    rows = [
        [
            setting.name,
            _interval(setting.statistics["iqm"], 1),
            f"{setting.standard_deviation:.1f}",
            _interval(setting.statistics["cvar"], 1),
            *_comparison(compared.get(setting.name)),
        ]
        for setting in edition.settings
    ]
    return markdown_table(header, rows)


def _comparison(found: Comparison | None) -> list[str]:
    if found is None:
        return ["", "", ""]
    return [_interval(found.difference, 1), _interval(found.improvement, 2), _verdict(found)]


def _verdict(found: Comparison) -> str:
    if found.verdict != "unclear":
        return found.verdict
    excludes_zero = found.difference.low * found.difference.high > 0
    side = "better" if found.difference.estimate > 0 else "worse"
    return f"{side}, before the correction" if excludes_zero else "cannot tell"


def _environments(results: ResultsFile) -> str:
    """Score, speed, gradient and sample efficiency by number of environments."""
    header = [
        "environments x steps",
        "total",
        "SD",
        "seconds per training",
        f"steps to a return of {GOOD_RETURN:g}",
        "gradient: variance",
        "signal",
        "signal / variance",
    ]
    returns, milestones, variances, signals = (
        {curve.setting: curve for curve in curves}
        for curves in (
            results.returns,
            results.milestones,
            results.gradient_variance,
            results.gradient_signal,
        )
    )
    middle = results.study.protocol.milestones.index(MIDDLE)
    rows = []
    for setting in results.editions[0].settings:
        name = setting.name
        variance, signal = (curves[name].mean[middle] for curves in (variances, signals))
        rows.append(
            [
                name,
                _interval(setting.statistics["mean"], 1),
                f"{setting.standard_deviation:.1f}",
                f"{milestones[name].seconds[-1]:.0f}",
                _steps_to(returns[name], GOOD_RETURN),
                f"{variance:.3g}",
                f"{signal:.3g}",
                f"{signal / variance:.2g}",
            ]
        )
    return markdown_table(header, rows, aligns_numbers=True)


def _steps_to(curve: Curve, value: float) -> str:
    """Steps after which the mean curve stays above a value."""
    below = np.flatnonzero(np.array(curve.mean) < value)
    first = below[-1] + 1 if len(below) else 0
    return f"{curve.steps[first]:,.0f}" if first < len(curve.steps) else "not reached"


def _interval(found: Estimate, digits: int) -> str:
    numbers = (f"{value:.{digits}f}" for value in (found.estimate, found.low, found.high))
    return "{} [{}, {}]".format(*numbers)


def _markdown(table: DataTable) -> str:
    rows = [[title, *(cell.plain for cell in cells)] for title, cells in table.rows.items()]
    return markdown_table(["", *table.columns], rows)


def _copy(runs: Path) -> None:
    for definition in sorted(STUDIES.glob("*.toml")):
        source, target = runs / definition.stem, STUDIES / definition.stem
        if not (source / RESULTS).is_file():
            print(f"{source} has no {RESULTS}")
            continue
        target.mkdir(exist_ok=True)
        for name in (STUDY, RESULTS):
            shutil.copy(source / name, target)


def main(arguments: Sequence[str] | None = None) -> None:
    """Copy results if asked, then write pages and pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copy", type=Path, metavar="RUNS")
    options = parser.parse_args(arguments)
    if options.copy:
        _copy(options.copy)
    for page in PAGES:
        page.write_text(fill_page(page.read_text(encoding="utf-8")), encoding="utf-8")
    for name, document in pictures().items():
        (DOCS / name).write_text(document, encoding="utf-8")


if __name__ == "__main__":
    main()

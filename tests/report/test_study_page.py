"""The page of a study: tables as files, and the page in a browser."""

import re
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.sync_api import sync_playwright

from cagepool.report import write_report
from cagepool.report.page import render_study, svg_document
from cagepool.report.study_data import NOT_KNOWN, Cell, DataTable, escape_latex, score_table
from cagepool.report.study_plots import (
    DASHES,
    interval_plot,
    profile_plot,
    study_curves,
    study_keys,
)
from cagepool.runs.study_schema import ResultsFile, read_results
from cagepool.study.results import write_results
from cagepool.study.study import play_run
from tests.report.test_browser import CHROMIUM, FLAGS
from tests.study.short_study import created, short_study

TABLE = DataTable(
    "scores",
    "Scores",
    ["IQM", "50 %"],
    {
        "a_b, c": [Cell("-1.0", "[-2.0, 0.0]", value=-1.04, low=-2 / 3, high=1e-9), Cell("3")],
        "[d]": [Cell(NOT_KNOWN), Cell("< 0.1", value=0.02)],
    },
)
PLACEHOLDER = re.compile(r"#0\d\dbad")  # of a color


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study") / "study"
    study = short_study(gradient_rollouts=2, editions=["2.1", "leaderboard"])
    for task in created(path, study):
        assert play_run(task.open_or_create(), protocol=study.protocol)
    write_results(path, study, {})
    write_report([path], path / "report.html")
    return path / "report.html"


@pytest.fixture(scope="module")
def results(page: Path) -> ResultsFile:
    return read_results(page.parent)


def test_a_table_is_written_as_csv() -> None:
    assert TABLE.csv.splitlines() == [
        ",IQM,IQM low,IQM high,50 %",
        '"a_b, c",-1.04,-0.6666666666666666,1e-09,3',
        "[d],,,,0.02",
    ]


def test_a_table_is_written_for_latex() -> None:
    assert TABLE.latex.splitlines()[2:6] == [
        r" & IQM & 50 \% \\",
        r"\midrule",
        r"a\_b, c & -1.0 [-2.0, 0.0] & 3 \\",
        r"{}[d] & -- & $<$ 0.1 \\",
    ]
    assert escape_latex("~^\\") == r"\textasciitilde{}\textasciicircum{}\textbackslash{}"
    assert escape_latex("<|>") == "$<$$|$$>$"


def test_the_optimality_gap_is_left_out_where_it_repeats_the_mean(results: ResultsFile) -> None:
    edition = results.editions[0]
    with_gap, without_gap = score_table(edition, -10.0), score_table(edition, 0.0)
    assert [name for name in with_gap.columns if name not in without_gap.columns] == [
        "Optimality gap"
    ]
    assert {len(cells) for cells in without_gap.rows.values()} == {len(without_gap.columns)}


def test_files_of_lines_have_a_legend(results: ResultsFile) -> None:
    (one, *_) = results.editions[0].settings
    names = [f"setting {number} of 12" for number in range(12)]
    edition = replace(results.editions[0], settings=[replace(one, name=name) for name in names])
    plot = profile_plot(edition)
    document = svg_document(plot)
    for name in names:
        assert f">{name}<" in document
        assert name not in plot.svg
    assert not PLACEHOLDER.search(document)
    assert _height(document) > _height(plot.svg)
    for plot in study_curves(results):
        assert all(f">{curve.setting}<" in plot.document for curve in results.returns)


def test_a_name_with_dollars_is_no_formula(results: ResultsFile) -> None:
    (one, *_) = results.editions[0].settings
    name = r"$\frac$ and $5"
    edition = replace(results.editions[0], settings=[replace(one, name=name)])
    assert f">{name}<" in interval_plot(edition).svg
    assert f">{name}<" in svg_document(profile_plot(edition))


def test_legends_list_the_settings_that_have_results(results: ResultsFile) -> None:
    settings = {"absent": next(iter(results.study.settings.values())), **results.study.settings}
    page = render_study(replace(results, study=replace(results.study, settings=settings)), "name")
    legends = [
        legend for legend in re.findall(r'<ul class="keys">.*?</ul>', page) if "svg" in legend
    ]
    assert len(legends) == len(results.editions) + 1
    for legend in legends:
        found = re.findall(r"var\(--(series-\d)\)\"/></svg>(.*?)</li>", legend)
        assert found == [
            (f"series-{number}", curve.setting)
            for number, curve in enumerate(results.returns, start=1)
        ]


def test_a_setting_keeps_its_color_where_others_have_no_results(results: ResultsFile) -> None:
    edition = replace(results.editions[0], settings=results.editions[0].settings[1:])
    for draw in (interval_plot, profile_plot):
        svg = draw(edition, study_keys(results)).svg
        assert "var(--series-2)" in svg
        assert "var(--series-1)" not in svg


def test_lines_are_dashed_after_each_round_of_colors(results: ResultsFile) -> None:
    curves = [replace(results.returns[0], setting=str(number)) for number in range(25)]
    keys = [*study_keys(replace(results, returns=curves)).values()]
    assert [key.dashes for key in keys[::6]] == [*DASHES, DASHES[0]]
    assert {key.series for key in keys[::6]} == {"series-1"}


def test_the_variance_of_gradients_has_a_logarithmic_axis(results: ResultsFile) -> None:
    means = [1e-4, 1e-1]
    curve = replace(results.gradient_variance[0], mean=means, low=[-1.0, 0.05], high=[1e-3, 0.2])
    (plot,) = (
        plot
        for plot in study_curves(replace(results, gradient_variance=[curve]))
        if plot.name == "gradient-variance"
    )
    for label in ("0.0001", "0.001", "0.01", "0.1"):
        assert f">{label}<" in plot.svg


def test_every_edition_has_its_matrix_of_reds(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for edition in ("2.1", "leaderboard"):
        assert f"played against (columns), edition {edition}" in text


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the path")
def test_the_page_fits_its_width_and_its_files_can_be_downloaded(page: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        messages: list[str] = []
        for width in (1280, 390):
            tab = browser.new_page(viewport={"width": width, "height": 900})
            tab.on("console", lambda message: messages.append(message.text))
            tab.goto(page.as_uri())
            assert messages == []
            assert tab.evaluate("document.documentElement.scrollWidth") == width
        for suffix, start in ((".svg", "<?xml"), (".csv", ",Seeds"), (".tex", r"\begin{tabular}")):
            with tab.expect_download() as download:
                tab.locator(f'a[download$="{suffix}"]').first.click()
            text = download.value.path().read_text(encoding="utf-8")
            assert text.startswith(start)
            assert not PLACEHOLDER.search(text)
        browser.close()


def test_a_study_is_reported_by_itself(page: Path, tmp_path: Path) -> None:
    other = shutil.copytree(page.parent, tmp_path / "copy")
    with pytest.raises(ValueError, match="a study must be reported by itself"):
        write_report([page.parent, other], tmp_path / "both.html")


def test_a_study_without_results_names_the_command_that_makes_them(tmp_path: Path) -> None:
    created(tmp_path / "new", short_study())
    with pytest.raises(ValueError, match="run it with cagepool study"):
        write_report([tmp_path / "new"], tmp_path / "report.html")


def _height(svg: str) -> float:
    (height,) = re.findall(r'<svg[^>]* height="([\d.]+)pt"', svg)
    return float(height)

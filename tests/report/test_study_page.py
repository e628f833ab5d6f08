"""The page of a study: tables as files, and the page in a browser."""

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from cagepool.report import write_report
from cagepool.report.study_data import Cell, DataTable, escape_latex
from cagepool.study.folder import open_training
from cagepool.study.results import write_results
from cagepool.study.run import play_run
from tests.report.test_browser import CHROMIUM, FLAGS
from tests.study.short_study import created, short_study

TABLE = DataTable(
    "scores", "Scores", ["IQM", "50 %"], {"a_b, c": [Cell("-1.0", "[-2.0, 0.0]"), Cell("3")]}
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study") / "study"
    study = short_study(gradient_rollouts=2, editions=["2.1", "leaderboard"])
    for task in created(path, study):
        assert play_run(open_training(path, study, task.setting, task.seed), study.protocol)
    write_results(path, study, {})
    write_report([path], path / "report.html")
    return path / "report.html"


def test_a_table_is_written_as_csv() -> None:
    assert TABLE.csv == ',IQM,50 %\n"a_b, c","-1.0 [-2.0, 0.0]",3\n'


def test_a_table_is_written_for_latex() -> None:
    assert TABLE.latex.splitlines()[2:5] == [
        r" & IQM & 50 \% \\",
        r"\midrule",
        r"a\_b, c & -1.0 [-2.0, 0.0] & 3 \\",
    ]
    assert escape_latex("~^\\") == r"\textasciitilde{}\textasciicircum{}\textbackslash{}"


def test_every_edition_has_its_matrix_of_reds(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for edition in ("2.1", "leaderboard"):
        assert f"played against (columns), edition {edition}" in text


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the path")
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
            assert not re.search(r"#0\d\dbad", text)  # placeholders of colors
        browser.close()


def test_a_study_is_reported_by_itself(page: Path, tmp_path: Path) -> None:
    other = shutil.copytree(page.parent, tmp_path / "copy")
    with pytest.raises(ValueError, match="a study must be reported by itself"):
        write_report([page.parent, other], tmp_path / "both.html")


def test_a_study_without_results_names_the_command_that_makes_them(tmp_path: Path) -> None:
    created(tmp_path / "new", short_study())
    with pytest.raises(ValueError, match="run it with cagepool study"):
        write_report([tmp_path / "new"], tmp_path / "report.html")

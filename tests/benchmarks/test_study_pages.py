"""Committed studies: complete, as their files define them, and quoted exactly."""

from pathlib import Path

import pytest

from benchmarks.study_pages import DOCS, PAGES, STUDIES, fill_page, pictures
from cagepool.runs.study_schema import read_results
from cagepool.study.config import is_same, read_study

DEFINITIONS = sorted(STUDIES.glob("*.toml"))


def test_there_are_three_studies() -> None:
    assert [path.stem for path in DEFINITIONS] == ["ablation", "attackers", "diversity"]


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda path: path.stem)
def test_a_committed_study_is_complete_and_is_that_of_its_file(definition: Path) -> None:
    results = read_results(definition.with_suffix(""))

    assert is_same(results.study, read_study(definition))
    assert not results.failures
    for edition in results.editions:
        assert [one.name for one in edition.settings] == [*results.study.settings]
        assert all(one.seeds == results.study.protocol.seeds for one in edition.settings)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_pages_quote_the_studies_exactly(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert "<!-- study: " in text
    assert fill_page(text) == text, "run `make pages`"


def test_pictures_are_those_of_the_studies() -> None:
    for name, document in pictures().items():
        assert (DOCS / name).read_text(encoding="utf-8") == document, "run `make pages`"

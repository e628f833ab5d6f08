"""docs/benchmarks.md is what its files give, and nothing else."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.page import FILES, FOLDER, PAGE, count, page, percent
from tests.bench.results import result, row


def written(folder: Path, name: str, groups: dict[str, Any], **more: Any) -> None:
    content = {**result(bench=name), "groups": groups, **more}
    (folder / f"{name}.json").write_text(json.dumps(content))


def test_the_page_is_what_the_files_give() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


def test_without_files_there_is_no_figure_of_ours(tmp_path: Path) -> None:
    text = page(tmp_path)
    assert "| native, one process | | | \N{EN DASH} |" in text
    assert all(f"`{name}.json`" in text for name in FILES)


def test_figures_come_from_the_files(tmp_path: Path) -> None:
    rates = {"native": 2e6, "pipes": 1e4}
    rows = [row([1e9 / rate] * 3, name) for name, rate in rates.items()]
    groups = {f"CAGE-2 {size}": rows for size in (1, 20, 200)}
    written(tmp_path, "scaling", groups, scaling={})
    figures = {"episodes a second, native": 34_600, "native / CybORG, one process": 7_000}
    written(tmp_path, "sustained", {}, ratios=figures)

    text = page(tmp_path)

    assert "| native, one process | | | 2M |" in text
    assert "| 20 | 2M (5 %) | 10,000 (5 %) |" in text
    assert "| native, one process | | 2M | | 200x |" in text
    assert "Native games play 200x the target, and 7,000x" in text
    assert "`scaling.json`" not in text.partition("Not there yet")[2]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "\N{EN DASH}"),
        (0.123456, "0.123"),
        (412.9, "413"),
        (12_345, "12,300"),
        (999_900, "1M"),
        (28_168_000, "28.2M"),
    ],
)
def test_figures_have_three_digits(value: float | None, text: str) -> None:
    assert count(value) == text


def test_shares_are_told_in_percent() -> None:
    assert [percent(value) for value in (1.0, 0.958, 0.0123)] == ["100 %", "96 %", "1.2 %"]


def test_a_script_beside_the_page_hides_no_module_of_python() -> None:
    scripts = {path.stem for path in FOLDER.glob("*.py")}
    assert scripts & sys.stdlib_module_names == set()

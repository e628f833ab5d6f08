"""docs/benchmarks.md has the figures of the result files."""

import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from benchmarks.page import BENCHES, FOLDER, PAGE, count, page, percent
from cagepool.bench.schema import Measurement, write_result
from tests.bench.results import result, row


def write(folder: Path, name: str, groups: dict[str, list[Measurement]], **more: Any) -> None:
    content = structs.replace(result(bench=name), groups=groups, **more)
    write_result(content, folder / f"{name}.json")


def test_the_page_is_what_the_files_give() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make pages`"


def test_without_files_the_page_has_no_figures(tmp_path: Path) -> None:
    text = page(tmp_path)
    assert "| CybORG, one process | \N{EN DASH} |" in text
    assert all(f"`{name}.json`" in text for name in BENCHES)


def test_figures_come_from_the_files(tmp_path: Path) -> None:
    rates = {"native": 2e6, "pipes": 1e4}
    rows = [row([1e9 / rate] * 3, name) for name, rate in rates.items()]
    groups = {f"{kind} {size}": rows for size in (1, 20, 200) for kind in ("CAGE-2", "cheap")}
    shares = {"busy: cheap 20: auto (sync) / fastest": 0.97}
    write(tmp_path, "scaling", groups, ratios=shares, facts={"scaling": {}})
    write(tmp_path, "stragglers", {}, ratios={"a: b / ideal": 0.8, "a: b / bare loops": 0.9})
    figures = {"episodes per second, native": 34_600, "native / CybORG, one process": 7_000}
    write(tmp_path, "sustained", {}, ratios=figures)

    text = page(tmp_path)

    assert "| 20 | 2M (5 %) | 10,000 (5 %) |" in text
    assert "| 20 | \N{EN DASH} | \N{EN DASH} | 0.97 (sync) | \N{EN DASH} |" in text
    assert "| a: b | 80 % | 90 % |" in text
    assert "| 100 native games, compliance with an order, mean of one minute | 34,600 |" in text
    assert "measured interleaved with CybORG: 7,000x" in text
    assert "`scaling.json`" not in text.partition("Not measured yet, with dashes")[2]


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


def test_shares_are_written_in_percent() -> None:
    assert [percent(value) for value in (1.0, 0.958, 0.0123)] == ["100 %", "96 %", "1.2 %"]


def test_no_script_hides_a_module_of_python() -> None:
    scripts = {path.stem for path in FOLDER.rglob("*.py")}
    assert scripts & sys.stdlib_module_names == set()

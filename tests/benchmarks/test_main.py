"""`python -m benchmarks` runs suites and writes their results."""

from pathlib import Path

import pytest

import benchmarks.__main__ as command
from benchmarks.page import BENCHES as ON_THE_PAGE
from cagepool.bench import BENCHES, Bench
from cagepool.bench.measure import Figures, Progress
from cagepool.bench.schema import read_result


def suites(monkeypatch: pytest.MonkeyPatch, **benches: Bench) -> None:
    monkeypatch.setattr(command, "benches", lambda _: benches)


def measure(progress: Progress, *, quick: bool) -> Figures:
    progress("group", 1, 1)
    return Figures(ratios={"a / b": 2.0}, facts={"quick": quick})


def measure_nothing(progress: Progress, *, quick: bool) -> Figures:  # noqa: ARG001
    return Figures(ratios={})


def test_a_result_is_written_per_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suites(
        monkeypatch,
        first=Bench("", measure),
        second=Bench("", measure, {"no_such_library": "pip install it"}),
        third=Bench("", measure_nothing),
    )
    command.main(command.parse(["--quick", "--out", str(tmp_path)]))
    result = read_result(tmp_path / "first.json")
    assert (result.bench, result.ratios, result.facts) == ("first", {"a / b": 2}, {"quick": True})
    assert [path.name for path in tmp_path.iterdir()] == ["first.json"]
    assert capsys.readouterr().out.splitlines() == [
        "group: 1 repetitions",
        "       2.000  a / b",
        "second is left out: it needs no_such_library: pip install it",
        "third is left out: nothing to compare with was given",
    ]


def test_an_unknown_suite_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"names must be among .*, got nothing"):
        command.main(command.parse(["nothing"]))


def test_every_file_of_the_page_has_a_bench() -> None:
    assert ON_THE_PAGE.keys() <= BENCHES.keys() | command.benches(command.parse([])).keys()


def test_cyborg_that_cannot_be_loaded_is_a_missing_library(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CAGEPOOL_CYBORG", str(tmp_path))
    bench = command.benches(command.parse([]))["cyborg"]
    assert command._missing_library("cyborg", bench) == "needs CybORG: see docs/cyborg.md"

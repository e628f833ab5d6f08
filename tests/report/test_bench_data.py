"""The page about benchmark results."""

import re
from pathlib import Path

import pytest
from msgspec import structs

from cagepool.bench.schema import BenchResult, Measurement, write_result
from cagepool.report import write_report
from cagepool.report.data import to_bench_data
from tests.bench.results import result, row

SIZES = (1, 10, 100)


def rows(rate: float) -> list[Measurement]:
    """Two contenders: the first with that rate, the second with half of it."""
    return [row([1e9 / each] * 4, name) for name, each in (("native", rate), ("sync", rate / 2))]


@pytest.fixture
def swept() -> BenchResult:
    """Three sizes with a fivefold rate per tenfold size, and one group that is no sweep."""
    groups = {f"CAGE-2 {size}": rows(1000 * 5**place) for place, size in enumerate(SIZES)}
    advice = [{"backend": "native", "first": 1, "last": 100}]
    crossing = [{"overtaken": "sync", "faster": "native", "environments": 7.4}]
    scaling = {"CAGE-2": {"recommendation": advice, "crossings": crossing}}
    groups["besides"] = [row([1e6, 2e6, 3e6], "<b>", games=7, red="B_lineAgent")]
    return structs.replace(result(bench="scaling"), groups=groups, facts={"scaling": scaling})


def render_page(tmp_path: Path, *contents: BenchResult) -> str:
    files = [tmp_path / f"{number}.json" for number, _ in enumerate(contents)]
    for file, content in zip(files, contents, strict=True):
        write_result(content, file)
    write_report(files, tmp_path / "page.html")
    return (tmp_path / "page.html").read_text(encoding="utf-8")


def test_groups_of_several_sizes_become_curves(swept: BenchResult) -> None:
    bench = to_bench_data(swept)
    (sweep,) = bench.sweeps
    rates = {size: contender.rates[1] for size, contender in sweep.curves["native"].items()}
    assert rates == pytest.approx({1: 1000, 10: 5000, 100: 25_000})  # 1e9 is divided twice
    assert sweep.efficiency["sync"] == pytest.approx({1: 1, 10: 0.5, 100: 0.25})  # so here
    assert sweep.recommendations == [
        "Fastest: native from 1 to 100.",
        "native overtakes sync at about 7",
    ]
    assert [group.title for group in bench.groups] == ["besides"]


def test_two_sizes_are_not_a_sweep(swept: BenchResult) -> None:
    del swept.groups["CAGE-2 10"]
    assert to_bench_data(swept).sweeps == []


def test_a_measurement_has_the_quartiles_of_its_rate(swept: BenchResult) -> None:
    (contender,) = to_bench_data(swept).groups[0].contenders
    assert contender.nanoseconds == (1e6, 2e6, 3e6)
    assert contender.rates == pytest.approx((1e9 / 3e6, 500, 1000))  # floats are divided


def test_contenders_of_one_name_are_labeled_with_their_settings() -> None:
    same_name = result(row([1, 2], games=1, red="x"), row([1, 2], games=2, red="x"))
    (group,) = to_bench_data(same_name).groups
    assert group.common == "red x"
    assert [group.label(contender) for contender in group.contenders] == [
        "Batch.step, games 1",
        "Batch.step, games 2",
    ]


def test_the_page_shows_every_contender_and_needs_no_other_file(
    swept: BenchResult, tmp_path: Path
) -> None:
    page = render_page(tmp_path, swept, structs.replace(result(row([1, 2])), busy_elsewhere=0.4))
    assert page.count("<svg") == 2 + 1 + 1
    assert page.count('<th scope="row">native</th>') == len(SIZES)
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert "other processes used 40% of the CPU meanwhile: take the figures with care" in page
    assert {link[:1] for link in re.findall(r'(?:href|src)="([^"]*)"', page)} <= {"#", "d"}


def test_memory_has_its_own_table(tmp_path: Path) -> None:
    memory_row = {
        "environments": 10,
        "workers": 0,
        "bytes": 123_456,
        "shared_bytes": 42,
        "processes": 1,
        "grown_bytes": 0,
    }
    facts = {"memory": {"sync": [memory_row]}}
    page = render_page(tmp_path, structs.replace(result(bench="memory"), groups={}, facts=facts))
    assert "123,456" in page
    assert page.count("<svg") == 1


def test_bench_results_and_runs_cannot_share_a_page(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"reported by themselves, got x.json$"):
        write_report([Path("x.json"), tmp_path], tmp_path / "page.html")


def test_a_file_that_is_not_a_bench_result_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(ValueError, match="must be a result of `cagepool bench`: Object missing"):
        write_report([tmp_path / "x.json"], tmp_path / "page.html")

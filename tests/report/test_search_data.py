"""The page about a search."""

import re
from pathlib import Path
from typing import Any

import pytest

from cagepool.report import write_report
from cagepool.report.data import read_search
from cagepool.search import search
from cagepool.search.config import SearchConfig
from tests.report import run_folders

QUICK: dict[str, Any] = {
    "n_envs": 10, "max_steps": 10, "update_steps": 10, "n_eval_episodes": 2, "hidden": (8,),
    "order_eval_episodes": 4, "total_episodes": 120, "max_episodes_per_order": 20,
    "compliance_threshold": 0.5, "min_decisions": 0.1,
}  # fmt: skip


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = search.create(
        tmp_path_factory.mktemp("search") / "all<orders>", SearchConfig.from_flat(**QUICK)
    )
    assert search.search(run)
    return run.path


def render_page(folder: Path, out: Path) -> str:
    write_report([folder], out)
    return out.read_text(encoding="utf-8")


def test_every_measured_order_stands_in_the_ranking_once(searched: Path, tmp_path: Path) -> None:
    page = render_page(searched, tmp_path / "page.html")
    table = page[page.index("All measured orders") : page.index('id="progress"')]
    data = read_search(searched)
    assert len(data.ranking) > 2
    rows = re.findall(r'<th scope="row"><i [^>]*></i>([^<]*)</th>', table)
    assert [row.replace("&gt;", ">") for row in rows] == [result.order for result in data.ranking]


def test_orders_that_do_not_pass_come_after_those_that_do(searched: Path) -> None:
    verdicts = [result.passes for result in read_search(searched).ranking]
    assert verdicts == sorted(verdicts, reverse=True)


def test_each_class_has_its_orders(searched: Path) -> None:
    data = read_search(searched)
    assert sum(len(each.results) for each in data.classes) == len(data.ranking)
    # In 10 steps B_line gets no further than the enterprise hosts.
    assert all(each.n_orders == 120 // 2 for each in data.classes)


def test_the_page_needs_no_other_file_and_cannot_be_changed_by_a_name(
    searched: Path, tmp_path: Path
) -> None:
    page = render_page(searched, tmp_path / "page.html")
    assert {link[:1] for link in re.findall(r'(?:href|src)="([^"]*)"', page)} <= {"#", "d"}
    assert "all<orders>" not in page
    assert "all&lt;orders&gt;" in page
    assert page.count("<svg") == 4


def test_a_search_that_has_measured_nothing_yet_gets_a_page(tmp_path: Path) -> None:
    run = search.create(tmp_path / "search", SearchConfig.from_flat(**QUICK))
    page = render_page(run.path, tmp_path / "page.html")
    assert f"cagepool search --resume {run.path}" in page


def test_a_search_is_reported_by_itself(searched: Path, tmp_path: Path) -> None:
    run = run_folders.trained(tmp_path / "run")
    with pytest.raises(ValueError, match="must be reported by itself"):
        write_report([run, searched], tmp_path / "page.html")


def test_a_damaged_table_is_refused(searched: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "config.json").write_text((searched / "config.json").read_text())
    (damaged / "decisions.csv").write_text("iteration,outcome\n0,passed\n")
    with pytest.raises(ValueError, match="is damaged"):
        read_search(damaged)

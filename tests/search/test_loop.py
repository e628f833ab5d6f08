"""Searches from start to end: budget, tables, kill -9."""

import csv
import io
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cagepool import runs
from cagepool.cli.main import run as command
from cagepool.cli.searching import SearchDisplay
from cagepool.search import search
from cagepool.search.budget import Budget
from cagepool.search.config import SearchConfig
from cagepool.search.records import Decision, read_decisions, write_decisions
from cagepool.train import runner
from tests.search.silent import Silent

QUICK: dict[str, Any] = {
    "n_envs": 10, "max_steps": 10, "update_steps": 10, "check_episodes": 2, "hidden": (8,),
    "appraisal_episodes": 4, "total_episodes": 175, "max_episodes_per_order": 40, "patience": 2,
    "compliance_threshold": 0.5, "min_decisions": 0.1,
}  # fmt: skip


class StopAfter:
    """Wants to stop when it has been asked so often."""

    def __init__(self, updates: int) -> None:
        self.left = updates

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


def searched(folder: Path, **settings: Any) -> runs.Run:
    run = search.create(folder, SearchConfig(**{**QUICK, **settings}))
    assert search.search(run, Silent(), lambda: False)
    return run


def numbers_of(folder: Path) -> dict[str, str]:
    """All that a search leaves, but for times."""
    found = {name: (folder / name).read_text() for name in ("decisions.csv", "orders.csv")}
    with (folder / "updates.csv").open() as file:
        rows = [
            {n: v for n, v in row.items() if "seconds" not in n} for row in csv.DictReader(file)
        ]
    return {**found, "updates.csv": repr(rows)}


@pytest.mark.parametrize("method", ["gp-ucb", "random", "round-robin"])
def test_the_budget_is_spent_and_never_exceeded(tmp_path: Path, method: str) -> None:
    run = searched(tmp_path / "search", method=method)
    decisions = read_decisions(run.path)
    episodes = [decision.episodes or 0 for decision in decisions]
    assert max(episodes) <= 40
    assert 175 - 10 < sum(episodes) <= 175
    assert decisions[-1].total_episodes == sum(episodes)
    played = (runs.open_run(run.path / d.run).metrics()["episodes"][-1] for d in decisions)
    assert [*played] == episodes


@pytest.mark.parametrize(
    ("total", "spent", "most", "allowed"),
    [(100, 0, 40, 40), (100, 70, 40, 30), (100, 91, 40, 0), (100, 100, 40, 0), (5, 0, 5, 5)],
)
def test_a_training_is_allowed_what_is_left(
    total: int, spent: int, most: int, allowed: int
) -> None:
    assert Budget(total, spent).allowance(most, 10) == allowed


def test_a_new_order_starts_from_the_nearest_one_or_from_nothing(
    whole: Path, tmp_path: Path
) -> None:
    heirs = read_decisions(whole)
    assert [heir.inherits for heir in heirs[:2]] == [None, 0]
    loners = searched(tmp_path / "loners", inherit=False)
    assert {loner.inherits for loner in read_decisions(loners.path)} == {None}


def test_a_search_without_a_gate_trains_to_every_order_for_as_long(tmp_path: Path) -> None:
    run = searched(tmp_path / "search", gate=False, total_episodes=120)
    assert [d.episodes for d in read_decisions(run.path)] == [40, 40, 40]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search that was never disturbed."""
    return searched(tmp_path_factory.mktemp("whole") / "search").path


def test_an_order_that_has_passed_is_trained_on_without_a_gate(tmp_path: Path) -> None:
    run = search.create(tmp_path / "search", SearchConfig(**{**QUICK, "total_episodes": 80}))
    first = Decision(
        iteration=0, order="user>op_host>enterprise>op_server>defender", why="drawn", run="000",
        allowance=40,
    )  # fmt: skip
    settings = SearchConfig(**QUICK).training_to(first.number, 0, total_episodes=40)
    assert runner.train(
        runs.create(run.path / "000", settings.as_dict(), "0"), Silent(), lambda: False
    )
    outcome = {"outcome": "passed", "mean": -1.0, "standard_error": 0.1, "compliance": 1.0,
               "coverage": 1.0, "decisions": 2.0, "wasted_fixes": 0.0, "passes": True}  # fmt: skip
    again = replace(first, iteration=1, run="001", inherits=0)
    write_decisions(run.path, [first.ended(outcome, 40, 40), again])
    assert search.search(run, Silent(), lambda: False)
    last = read_decisions(run.path)[1]
    assert (last.outcome, last.episodes) == ("fixed", 40)


@pytest.mark.parametrize("updates", [0, 3, 9])
def test_a_search_that_is_stopped_and_resumed_makes_the_same_decisions(
    whole: Path, tmp_path: Path, updates: int
) -> None:
    parts = search.create(tmp_path / "parts", SearchConfig(**QUICK))
    assert not search.search(parts, Silent(), StopAfter(updates))
    assert search.search(parts, Silent(), lambda: False)
    assert numbers_of(parts.path) == numbers_of(whole)


def test_tables_that_were_not_written_any_more_are_written_by_the_next_life(
    whole: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "search"
    shutil.copytree(whole, copy)
    (copy / "orders.csv").unlink()
    (copy / "updates.csv").unlink()
    assert search.search(runs.open_run(copy), Silent(), lambda: False)
    assert numbers_of(copy) == numbers_of(whole)


def flags() -> list[str]:
    named = {name.replace("_", "-"): value for name, value in QUICK.items() if name != "hidden"}
    given = [part for name, value in named.items() for part in (f"--{name}", str(value))]
    return [*given, "--hidden", "8", "--checkpoint-seconds", "0"]


def test_a_search_that_is_killed_at_any_moment_makes_the_same_decisions(
    whole: Path, tmp_path: Path
) -> None:
    killed = tmp_path / "killed"
    started = ["-m", "cagepool", "search"]
    arguments = [*started, *flags(), "--out", str(killed)]
    kills = 0
    # Each life ends a little after the search has written something new.
    for delay in (0.0, 0.1):
        process = subprocess.Popen(
            [sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_for_change(killed, process)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
        arguments = [*started, "--resume", str(killed)]
    assert kills
    assert command(["search", "--resume", str(killed)]) == 0
    assert numbers_of(killed) == numbers_of(whole)


def wait_for_change(folder: Path, process: "subprocess.Popen[bytes]") -> None:
    before = contents(folder)
    deadline = time.monotonic() + 60
    while process.poll() is None and contents(folder) == before:
        assert time.monotonic() < deadline
        os.sched_yield()


def contents(folder: Path) -> set[str]:
    """What has been written whole; before that it has a hidden name."""
    paths = (path for path in folder.rglob("*") if not path.name.startswith("."))
    return {str(path) for path in paths if path.suffix in ("", ".csv")}


def test_one_policy_for_all_orders_ranks_all_of_them(tmp_path: Path) -> None:
    run = searched(tmp_path / "search", method="universal", total_episodes=60)
    with (run.path / "orders.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 120
    assert all(row["reward"] for row in rows)
    assert runs.open_run(run.path / "universal").metrics()["episodes"][-1] == 60


@pytest.mark.parametrize(
    ("setting", "value", "sentence"),
    [
        ("method", "luck", "method must be one of"),
        ("order", "reverse", "decides about order itself"),
        ("overlap", True, "decides about overlap itself"),
        ("gp_beta", -1.0, "gp_beta must be at least 0"),
        ("max_episodes_per_order", 0, "max_episodes_per_order must be at least 1"),
    ],
)
def test_what_a_search_cannot_do_is_refused(setting: str, value: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        SearchConfig(**{**QUICK, setting: value})


def test_a_wrong_flag_is_refused_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["search", "--method", "luck"]) == 2
    assert capsys.readouterr().err.startswith("cagepool: method must be one of gp-ucb")


def test_a_terminal_shows_the_order_the_beliefs_and_the_budget(tmp_path: Path) -> None:
    config = SearchConfig(**{**QUICK, "total_episodes": 120})
    run = search.create(tmp_path / "search", config)
    console = Console(force_terminal=True, width=120, record=True, file=io.StringIO())
    with SearchDisplay(console, config) as display:
        assert search.search(run, display, lambda: False)
    text = console.export_text()
    last = read_decisions(run.path)[-1]
    assert f"{last.total_episodes} of 120" in text
    assert f"order {last.iteration}" in text
    assert "posterior" in text
    assert f"{last.order}: {last.outcome} after" in text


def test_the_folder_of_a_training_is_not_one_of_a_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = searched(tmp_path / "search", total_episodes=40)
    training = run.path / read_decisions(run.path)[0].run
    assert command(["search", "--resume", str(training)]) == 2
    assert "is that of a training" in capsys.readouterr().err


def test_a_resumed_search_keeps_its_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = searched(tmp_path / "search", total_episodes=40)
    assert command(["search", "--resume", str(run.path), "--gp-beta", "3"]) == 2
    assert "must keep its settings" in capsys.readouterr().err

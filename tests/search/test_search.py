"""Whole searches: budget, tables, stop, kill and resume."""

import csv
import io
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from rich.console import Console

from cagepool import runs
from cagepool.cli.display import SearchDisplay
from cagepool.cli.main import run as command
from cagepool.runs import listing
from cagepool.runs.schema import WorkflowFile
from cagepool.search import search
from cagepool.search.config import SearchConfig
from cagepool.search.records import Decision, read_decisions, training_folder, write_decisions
from cagepool.sim.compliance import ALL_ORDERS
from cagepool.train import runner
from tests.environment import LIMIT_S

QUICK: dict[str, Any] = {
    "n_envs": 10, "max_steps": 10, "update_steps": 10, "n_eval_episodes": 2, "hidden": (8,),
    "order_eval_episodes": 4, "total_episodes": 175, "max_episodes_per_order": 40, "patience": 2,
    "compliance_threshold": 0.5, "min_decisions": 0.1,
}  # fmt: skip


class StopAfter:
    """A stop condition that becomes true after some updates."""

    def __init__(self, updates: int) -> None:
        self.left = updates

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


def run_search(folder: Path, **settings: Any) -> runs.Run:
    run = search.create(folder, SearchConfig.from_flat(**{**QUICK, **settings}))
    assert search.search(run)
    return run


def tables_without_times(folder: Path) -> dict[str, str]:
    """Tables of a search without the columns of seconds."""
    found = {name: (folder / name).read_text() for name in ("decisions.csv", "orders.csv")}
    with (folder / "updates.csv").open() as file:
        rows = [
            {n: v for n, v in row.items() if "seconds" not in n} for row in csv.DictReader(file)
        ]
    return {**found, "updates.csv": repr(rows)}


@pytest.mark.parametrize("method", ["gp-ucb", "random", "round-robin"])
def test_the_budget_is_spent_and_never_exceeded(tmp_path: Path, method: str) -> None:
    run = run_search(tmp_path / "search", method=method)
    decisions = read_decisions(run.path)
    episodes = [decision.episodes or 0 for decision in decisions]
    assert max(episodes) <= 40
    assert 175 - 10 < sum(episodes) <= 175
    assert decisions[-1].total_episodes == sum(episodes)
    recorded = (runs.open_run(run.path / d.run).metrics()["episodes"][-1] for d in decisions)
    assert [*recorded] == episodes


@pytest.mark.parametrize(
    ("total", "reserved", "maximum", "allowance"),
    [(100, 0, 40, 40), (100, 70, 40, 30), (100, 91, 40, 0), (100, 100, 40, 0), (5, 0, 5, 5)],
)
def test_the_allowance_of_a_training_is_the_rest_of_the_budget(
    total: int, reserved: int, maximum: int, allowance: int
) -> None:
    budget = {"total_episodes": total, "max_episodes_per_order": maximum}
    config = SearchConfig.from_flat(**{**QUICK, **budget})
    assert listing.allowance(config.as_dict(), reserved) == allowance


def test_a_training_inherits_the_policy_of_the_nearest_order_unless_told_otherwise(
    whole: Path, tmp_path: Path
) -> None:
    assert [decision.inherits for decision in read_decisions(whole)[:2]] == [None, 0]
    run = run_search(tmp_path / "search", inherit=False)
    assert {decision.inherits for decision in read_decisions(run.path)} == {None}


def test_without_early_stopping_every_order_gets_the_same_episodes(
    tmp_path: Path,
) -> None:
    run = run_search(tmp_path / "search", early_stopping=False, total_episodes=120)
    assert [d.episodes for d in read_decisions(run.path)] == [40, 40, 40]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search without interruption."""
    return run_search(tmp_path_factory.mktemp("whole") / "search").path


def test_an_order_that_has_passed_is_trained_again_without_early_stopping(tmp_path: Path) -> None:
    run = search.create(
        tmp_path / "search", SearchConfig.from_flat(**{**QUICK, "total_episodes": 80})
    )
    first = Decision(
        iteration=0, order="user>op_host>enterprise>op_server>defender", why="drawn", run="000",
        allowance=40,
    )  # fmt: skip
    settings = SearchConfig.from_flat(**QUICK).training_config(
        first.order_number, 0, total_episodes=40
    )
    assert runner.train(runs.create(run.path / "000", settings.as_dict(), "0"))
    outcome = WorkflowFile(
        order=first.order, outcome="passed", reason="", mean=-1.0, standard_error=0.1, episodes=2,
        compliance=1.0, coverage=1.0, decisions=2.0, wasted_fixes=0.0, passes=True,
    )  # fmt: skip
    again = replace(first, iteration=1, run="001", inherits=0)
    write_decisions(run.path, [first.with_outcome(outcome, 40, 40), again])
    assert search.search(run)
    last = read_decisions(run.path)[1]
    assert (last.outcome, last.episodes) == ("fixed", 40)


@pytest.mark.parametrize("updates", [0, 3, 9])
def test_a_search_that_is_stopped_and_resumed_makes_the_same_decisions(
    whole: Path, tmp_path: Path, updates: int
) -> None:
    parts = search.create(tmp_path / "parts", SearchConfig.from_flat(**QUICK))
    assert not search.search(parts, should_stop=StopAfter(updates))
    assert search.search(parts)
    assert tables_without_times(parts.path) == tables_without_times(whole)


@pytest.mark.slow
def test_two_jobs_train_in_processes_to_the_same_tables_whether_stopped_or_not(
    tmp_path: Path,
) -> None:
    settings = {**QUICK, "jobs": 2, "total_episodes": 120}
    whole = run_search(tmp_path / "whole", **settings)
    decisions = read_decisions(whole.path)
    assert decisions[1].inherits is None  # decided while the first was pending
    assert decisions[-1].total_episodes == sum(one.episodes or 0 for one in decisions)
    parts = search.create(tmp_path / "parts", SearchConfig.from_flat(**settings))
    assert not search.search(parts, should_stop=StopAfter(1))
    assert search.search(parts)
    assert tables_without_times(parts.path) == tables_without_times(whole.path)


def test_a_training_with_settings_of_its_own_is_refused_by_the_resumed_search(
    tmp_path: Path,
) -> None:
    run = search.create(tmp_path / "search", SearchConfig.from_flat(**QUICK))
    assert not search.search(run, should_stop=StopAfter(0))
    config = run.path / read_decisions(run.path)[0].run / runs.CONFIG
    config.write_text(config.read_text().replace("cagepool/CAGE2-v0", "os:abort"))
    assert "os:abort" in config.read_text()
    with pytest.raises(ValueError, match="it holds a run with other settings"):
        search.search(run)


def test_missing_tables_are_written_by_the_resumed_search(whole: Path, tmp_path: Path) -> None:
    copy = tmp_path / "search"
    shutil.copytree(whole, copy)
    (copy / "orders.csv").unlink()
    (copy / "updates.csv").unlink()
    assert search.search(runs.open_run(copy))
    assert tables_without_times(copy) == tables_without_times(whole)


def flags() -> list[str]:
    named = {name.replace("_", "-"): value for name, value in QUICK.items() if name != "hidden"}
    given = [part for name, value in named.items() for part in (f"--{name}", str(value))]
    return [*given, "--hidden", "8", "--checkpoint-seconds", "0"]


@pytest.mark.soak
def test_a_search_that_is_killed_at_any_moment_makes_the_same_decisions(
    whole: Path, tmp_path: Path
) -> None:
    killed = tmp_path / "killed"
    started = ["-m", "cagepool", "search"]
    arguments = [*started, *flags(), "--out", str(killed)]
    kills = 0
    # Each process is killed shortly after the search has written a new file.
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
    assert tables_without_times(killed) == tables_without_times(whole)


def wait_for_change(folder: Path, process: "subprocess.Popen[bytes]") -> None:
    before = complete_files(folder)
    deadline = time.monotonic() + LIMIT_S
    while process.poll() is None and complete_files(folder) == before:
        assert time.monotonic() < deadline
        time.sleep(0.002)  # leaves the core to the search


def complete_files(folder: Path) -> set[str]:
    """Complete files; incomplete ones have a hidden name."""
    paths = (path for path in folder.rglob("*") if not path.name.startswith("."))
    return {str(path) for path in paths if path.suffix in ("", ".csv")}


def test_the_universal_method_ranks_all_orders_with_one_policy(tmp_path: Path) -> None:
    run = run_search(tmp_path / "search", method="universal", total_episodes=60)
    with (run.path / "orders.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 120
    assert all(row["reward"] for row in rows)
    assert runs.open_run(run.path / "universal").metrics()["episodes"][-1] == 60


@pytest.mark.parametrize(
    ("setting", "value", "sentence"),
    [
        ("method", "gp-usb", "method must be one of"),
        ("order", "reverse", "sets order.order itself"),
        ("overlap", True, "sets ppo.overlap itself"),
        ("gp_beta", -1.0, "gp_beta must be at least 0"),
        ("max_episodes_per_order", 0, "max_episodes_per_order must be at least 1"),
        ("jobs", 0, "jobs must be at least 1"),
    ],
)
def test_an_invalid_setting_of_a_search_is_refused(setting: str, value: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        SearchConfig.from_flat(**{**QUICK, setting: value})


def test_an_invalid_value_is_refused_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["search", "--method", "gp-usb"]) == 2
    assert capsys.readouterr().err.startswith("cagepool: --method must be one of gp-ucb")


def test_a_terminal_shows_the_order_the_posterior_and_the_budget(tmp_path: Path) -> None:
    config = SearchConfig.from_flat(**{**QUICK, "total_episodes": 120})
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


def test_the_folder_of_a_training_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_search(tmp_path / "search", total_episodes=40)
    training = run.path / read_decisions(run.path)[0].run
    assert command(["search", "--resume", str(training)]) == 2
    assert "is that of a training" in capsys.readouterr().err


def test_a_resumed_search_keeps_its_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_search(tmp_path / "search", total_episodes=40)
    assert command(["search", "--resume", str(run.path), "--gp-beta", "3"]) == 2
    assert "must keep its settings" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"run": "../mine"}, "run must be a folder of the search, got '../mine'"),
        ({"run": "/"}, "run must be a folder of the search"),
        ({"iteration": 7}, "iteration must be 0, got 7"),
        ({"inherits": 0}, "inherits must be an earlier iteration, got 0"),
        ({"outcome": "passed"}, "iteration 0 must have a result"),
    ],
)
def test_a_forged_decision_is_refused(tmp_path: Path, changes: Any, fault: str) -> None:
    order = ALL_ORDERS[0]
    decision = Decision(iteration=0, order=order, why="chance", run=training_folder(0, order))
    write_decisions(tmp_path, [decision])
    assert read_decisions(tmp_path) == [decision]
    write_decisions(tmp_path, [replace(decision, **changes)])

    with pytest.raises(runs.RunFileError, match=rf"decisions\.csv is damaged: {fault}"):
        read_decisions(tmp_path)


def test_a_link_in_place_of_a_training_is_refused(whole: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(whole, tmp_path / "search")
    training = copy / read_decisions(copy)[0].run
    training.rename(tmp_path / "elsewhere")
    training.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(runs.RunFileError, match="must be a folder, it is a link"):
        search.search(runs.open_run(copy))


def test_a_search_that_was_killed_before_its_first_decision_has_none(tmp_path: Path) -> None:
    assert read_decisions(tmp_path) == []

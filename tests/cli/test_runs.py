"""`cagepool runs`: list, differences, best runs, damaged folders."""

import json
import os
from pathlib import Path

import pytest

from cagepool import runs
from cagepool.cli.main import run
from cagepool.evaluate import Trial
from cagepool.evaluate.game_log import record_games
from cagepool.evaluate.protocol import evaluate
from cagepool.policy.load import load
from cagepool.search.config import SearchConfig
from cagepool.search.records import Decision, training_folder, write_decisions
from cagepool.sim.compliance import ALL_ORDERS
from tests.evaluate.folders import EVALUATIONS, make_run


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)


def evaluated(path: Path) -> float:
    blue = load(str(path))
    result = evaluate(blue, Trial(episodes=5, edition=blue.edition))
    games = record_games(result.trial, result.statistics)
    runs.write_evaluation(path, result.to_file(), games, is_last=False)
    return result.table.total.mean


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert run(["runs", *arguments]) == 0
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_runs_are_listed_with_their_scores(capsys: pytest.CaptureFixture[str]) -> None:
    make_run(Path("runs/one"))
    make_run(Path("runs/deep/two"), network=1, red_agent="b_line", total_episodes=5000)
    total = evaluated(Path("runs/one"))

    lines = listed(capsys)

    rows = {line.split()[0]: line.split()[1:] for line in lines if line.startswith("  runs/")}
    assert rows["runs/one"][:5] == ["mix", "2.1", "1,000", "-30.00", f"{total:.2f}"]
    assert rows["runs/deep/two"] == ["b_line", "2.1", "1,000/5,000", "-31.00", "-"]
    assert "runs/deep/two: interrupted; resume with: cagepool train --resume runs/deep/two" in lines


def test_only_settings_that_differ_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    for name, seed in (("a", 1), ("b", 2), ("c", 1)):
        make_run(Path("runs", name), seed=seed)

    lines = listed(capsys)

    start = lines.index("settings that differ")
    assert lines[start + 1] == "  run.seed: 1 (a, c); 2 (b)"
    assert not lines[start + 2].startswith("  ")


def test_the_best_run_is_printed_per_edition(capsys: pytest.CaptureFixture[str]) -> None:
    totals = {}
    for number in range(3):
        path = make_run(Path("runs", f"n{number}"), network=number)
        totals[evaluated(path)] = path
    other = make_run(Path("runs/other"), edition="leaderboard")
    evaluated(other)

    lines = listed(capsys)

    best = max(totals)
    assert any(
        line.startswith(f"best total, edition 2.1: {totals[best]}, {best:.2f} ±") for line in lines
    )
    assert any(line.startswith(f"best total, edition leaderboard: {other}, ") for line in lines)
    assert "best evaluation, mix, edition 2.1, 100 steps: runs/n0, -30.00 ± 0.50" in lines


def test_evaluations_against_different_reds_are_not_compared(
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_run(Path("runs/a"), red_agent="b_line")
    make_run(Path("runs/b"), red_agent="meander", network=5)

    lines = listed(capsys)

    checks = [line for line in lines if line.startswith("best evaluation")]
    assert [line.split()[2] for line in checks] == ["meander,", "b_line,"]


def _no_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def _cut(folder: Path) -> None:
    (folder / "config.json").write_text('{"format": 1, "sett')


def _newer(folder: Path) -> None:
    (folder / "config.json").write_text('{"format": 9, "settings": {}}')


def _without_settings(folder: Path) -> None:
    (folder / "config.json").write_text('{"format": 1, "settings": {"env": "CartPole-v1"}}')


def _bad_table(folder: Path) -> None:
    (folder / "metrics.csv").write_text("update,episodes\n1,many\n")


def _infinite(folder: Path) -> None:
    (folder / "metrics.csv").write_text("update,episodes\n1,inf\n")


def _deep(folder: Path) -> None:
    (folder / "evaluation.json").write_text('{"format": 1, "name": ' + "[" * 100_000)


def _no_column(folder: Path) -> None:
    (folder / "metrics.csv").write_text("update\n1\n")


def _fifo(folder: Path) -> None:
    (folder / "evaluations.csv").unlink()
    os.mkfifo(folder / "evaluations.csv")


def _bad_evaluation(folder: Path) -> None:
    (folder / "evaluation.json").write_text('{"format": 1}')


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (_no_config, "a run must be a folder with config.json, runs/bad has none"),
        (_cut, "runs/bad/config.json is damaged: "),
        (_newer, "runs/bad/config.json has format 9, this cagepool reads up to 1"),
        (
            _without_settings,
            "runs/bad/config.json is damaged: expected `object`, got `str`",
        ),
        (_bad_table, "runs/bad/metrics.csv is damaged: could not convert string to float: 'many'"),
        (_infinite, "runs/bad/metrics.csv is damaged: episodes must be at least 0, got 'inf'"),
        (_deep, "runs/bad/evaluation.json is damaged: "),
        (_no_column, "runs/bad/metrics.csv is damaged: it has no column episodes"),
        (_fifo, "runs/bad/evaluations.csv must be a regular file, it is a FIFO"),
        (
            _bad_evaluation,
            "runs/bad/evaluation.json is damaged: object missing required field",
        ),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_damaged_folder_is_listed_with_its_fault_beside_the_others(
    damage: object, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(Path("runs/good"))
    make_run(Path("runs/bad"))
    assert callable(damage)
    damage(Path("runs/bad"))

    lines = listed(capsys)

    assert any(line.startswith(f"damaged: {fault}") for line in lines)
    assert any(line.startswith("  runs/good") for line in lines)


def test_a_run_without_an_update_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_run(Path("runs/new"))
    (folder / runs.METRICS).unlink()
    runs.TableWriter(folder / runs.EVALUATIONS, EVALUATIONS).close()

    (row,) = (line.split() for line in listed(capsys) if line.startswith("  runs/"))

    assert row == ["runs/new", "mix", "2.1", "0/1,000", "-", "-"]


def test_json_has_the_same_content(capsys: pytest.CaptureFixture[str]) -> None:
    make_run(Path("else/a"), seed=1)
    make_run(Path("else/b"), seed=2, total_episodes=2000)
    Path("else/c/checkpoints").mkdir(parents=True)
    total = evaluated(Path("else/b"))

    read = json.loads("\n".join(listed(capsys, "else", "else/a", "--json")))

    assert [one["path"] for one in read["runs"]] == ["else/a", "else/b"]
    assert [one["state"] for one in read["runs"]] == ["finished", "interrupted"]
    assert read["runs"][1]["total"]["mean"] == total
    assert [one["path"] for one in read["damaged"]] == ["else/c"]
    assert read["differing"]["run.seed"] == {"1": ["a"], "2": ["b"]}
    assert read["best"] == {"2.1": "else/b"}


def test_a_folder_without_runs_is_reported_and_a_missing_one_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("empty").mkdir()

    assert listed(capsys, "empty") == ["no runs in empty"]
    assert run(["runs"]) == 2
    assert (
        capsys.readouterr().err == "cagepool: runs must be listed from a folder, runs is not one\n"
    )


@pytest.mark.parametrize("name", ["a[/red]", "b[bold]", ":smile:", "c\x1b[2Jd", "e\u202ef"])
def test_a_name_is_printed_as_it_is_without_control_of_the_terminal(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_run(Path("runs", name))

    listed_name = next(line for line in listed(capsys) if line.startswith("  runs/"))

    visible = name.replace("\x1b", r"\x1b").replace("\u202e", r"\u202e")
    assert listed_name.split()[0] == f"runs/{visible}"
    assert run(["evaluate", str(folder), "--episodes", "2"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{visible.split('/')[-1]} (best-000002), edition 2.1")
    assert f"written to runs/{visible}: evaluation.json, games.json" in printed
    assert run(["evaluate", f"no such\x1b[2J{name}"]) == 2
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize("columns", [60, 80])
def test_long_names_stay_whole_on_a_narrow_console(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    path = make_run(Path("runs/20261117-121500-RedMeanderAgent-seed12345"), red_agent="meander")
    evaluated(path)

    lines = listed(capsys)

    start = lines.index(str(path))
    assert lines[start + 1].startswith("    red meander; edition 2.1; episodes 1,000; best")
    assert all(len(line) <= columns for line in lines[start : lines.index("", start)])


def make_search(path: Path, *, with_decisions: bool = True) -> None:
    config = SearchConfig.from_flat(total_episodes=1000)
    search_run = runs.create(path, config.as_dict(), "0.1.0")
    if with_decisions:
        order = ALL_ORDERS[0]
        training = training_folder(0, order)
        rows = [
            Decision(
                iteration=0, order=order, why="chance", run=training, allowance=600,
                outcome="passed", episodes=600, total_episodes=600, reward=-12.5,
                standard_error=0.5, passes=True,
            )
        ]  # fmt: skip
        write_decisions(search_run.path, rows)
        make_run(path / training)


def test_a_search_is_one_line_and_its_trainings_are_listed_on_request(
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_search(Path("runs/my search"))
    make_run(Path("runs/one"))

    lines = listed(capsys)

    assert [line.split()[0] for line in lines if line.startswith("  runs/")] == ["runs/one"]
    (line,) = (line for line in lines if line.startswith("runs/my search: search"))
    assert f"1 training, 600/1,000 episodes, best {ALL_ORDERS[0]} -12.50; interrupted" in line
    assert line.endswith("resume with: cagepool search --resume 'runs/my search'")
    read = json.loads("\n".join(listed(capsys, "--json")))
    assert [one["state"] for one in read["searches"]] == ["interrupted"]
    inside = json.loads("\n".join(listed(capsys, "runs/my search", "--json")))
    assert [Path(one["path"]).name[:4] for one in inside["runs"]] == ["000-"]


def test_a_search_that_was_killed_at_its_start_is_listed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_search(Path("runs/killed"), with_decisions=False)

    (line,) = listed(capsys)

    assert line.startswith("runs/killed: search (")
    assert line.endswith("interrupted; resume with: cagepool search --resume runs/killed")


def test_other_environments_have_no_red_and_no_edition(capsys: pytest.CaptureFixture[str]) -> None:
    make_run(Path("runs/pole"), env="CartPole-v1")

    lines = listed(capsys)

    (row,) = (line.split() for line in lines if line.startswith("  runs/"))
    assert row == ["runs/pole", "CartPole-v1", "-", "1,000", "-30.00", "-"]
    assert "best evaluation, CartPole-v1: runs/pole, -30.00 ± 0.50" in lines
    (read,) = json.loads("\n".join(listed(capsys, "--json")))["runs"]
    assert (read["red_agent"], read["edition"], read["max_steps"]) == (None, None, None)

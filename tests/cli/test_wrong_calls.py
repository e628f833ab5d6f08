"""Wrong calls of every command: exit code 2, one sentence, no traceback, nothing left behind."""

import subprocess
import sys
from pathlib import Path

import pytest

from cagepool import runs
from cagepool.cli.main import run
from cagepool.cyborg import VARIABLE
from tests.cli.command import cagepool
from tests.cli.short_training import SHORT_FLAGS, Capture
from tests.evaluate.folders import make_run


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)


CALLS = {
    "nonsense": "command must be one of train",
    "evaluat sleep": "did you mean evaluate?",
    "train --env cyborg --out new": "CybORG must be installed",
    "train --env nowhere:make --out new": "--env names the module 'nowhere', which does not exist",
    "train --gamma 7": "--gamma must be from 0 to 1, got 7.0",
    "train --red nobody": "--red-agent must be one of",
    "train --red b_line --red-agent meander": "--red-agent must be given once, got --red-agent and",
    "train --num-envs 0": "--n-envs must be at least 1, got 0",
    "train --n-envs 4 --num-envs=4": "--n-envs must be given once, got --n-envs and --num-envs",
    "train --preset minutes --scenario cage2/users:test": "--preset minutes is for CAGE-2 only",
    "train --order user,user": "joined by ,; got 'user,user'",
    "train --resume nowhere": "nowhere",
    "train --nenvs 3": "unknown flag --nenvs, did you mean --n-envs?",
    "search --total-episodes 10": "--total-episodes must be at least --n-envs",
    "search --order critical_first": "unknown flag --order",
    "search --universal": "unknown flag --universal",
    "search --start-from x": "unknown flag --start-from",
    "search --async": "unknown flag --async",
    "search --resume nowhere": "nowhere",
    "evaluate nope": "a defender must be a run folder",
    "evaluate sleep --which last": "only a run folder has a last checkpoint, got 'sleep'",
    "evaluate sleep --episodes 1": "--episodes must be from 2, which a standard error needs",
    "evaluate sleep --env cyborg": "CybORG must be installed",
    "evaluate sleep --edition 1": "--edition must be one of 2.1, leaderboard",
    "play --blue react-restor": "did you mean react-restore?",
    "play --max-steps 0": "--max-steps must be from 1 to",
    "play --red-agent nobody": "--red must be one or more of",
    "report nowhere": "nowhere",
    "bench foo": "must be one of engine, workers, scaling, stragglers, train, jax, all; got 'foo'",
    "bench engine --compare nowhere": "nowhere",
    "profile -- nothing": "nothing",
    "parity --red nobody": "--red must be",
}


@pytest.mark.parametrize("call", CALLS)
def test_a_wrong_call_is_refused_in_one_sentence(call: str, capsys: Capture) -> None:
    assert run(call.split()) == 2

    out, error = capsys.readouterr()
    assert out == ""
    assert error.count("\n") == 1
    assert error.startswith("cagepool: ")
    assert CALLS[call] in error
    assert [*Path().iterdir()] == []


def test_a_wrong_setting_is_found_before_pytorch_is_imported() -> None:
    program = (
        "import sys; from cagepool.cli.main import run; code = run(['train', '--gamma', '7']); "
        "print(code, *({'torch', 'tensorboard'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "2\n"


def test_the_flags_that_a_search_sets_are_not_in_its_help() -> None:
    done = cagepool("search", "--help")

    assert done.returncode == 0
    for flag in ("--order ", "--universal", "--start-from", "--async", "--overlap"):
        assert flag not in done.stdout
    assert "--alignment-lambda" in done.stdout


@pytest.mark.parametrize("flag", ["--red", "--red-agent"])
def test_both_names_of_the_flag_for_red_are_accepted(flag: str, capsys: Capture) -> None:
    assert run(["play", flag, "b_line", "--episodes", "2", "--max-steps", "2"]) == 0
    assert "B_lineAgent" in capsys.readouterr().out
    assert run(["train", f"{flag}=nobody"]) == 2
    assert "--red-agent must be one of" in capsys.readouterr().err


def test_an_order_is_accepted_with_commas(capsys: Capture) -> None:
    order = "op_server,enterprise,op_host,user,defender"

    assert (
        run(["train", *SHORT_FLAGS, "--total-episodes", "7", "--order", order, "--out", "a"]) == 0
    )

    assert "compliance" in capsys.readouterr().out


def test_printed_commands_are_quoted_and_names_are_printed_as_they_are(capsys: Capture) -> None:
    name = "run ü [/red] [bold] 1"

    assert run(["train", *SHORT_FLAGS, "--total-episodes", "7", "--out", name]) == 0

    out = capsys.readouterr().out
    assert f"run folder: {name}\n" in out
    assert f"evaluate it with: cagepool evaluate '{name}'\n" in out
    assert f"write a report with: cagepool report '{name}'\n" in out
    assert run(["evaluate", name, "--episodes", "2"]) == 0
    assert capsys.readouterr().out.startswith("red] [bold] 1 (best-")


def test_the_resume_of_a_finished_run_says_so(capsys: Capture) -> None:
    assert run(["train", *SHORT_FLAGS, "--total-episodes", "7", "--out", "a"]) == 0
    capsys.readouterr()

    assert run(["train", "--resume", "a"]) == 0

    assert "the run is finished: there was nothing to resume\n" in capsys.readouterr().out


@pytest.mark.parametrize("width", [60, 80])
def test_tables_of_scores_keep_names_and_figures_whole(
    width: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    folder = make_run(Path("mine"), order="critical_first")
    assert runs.is_run(folder)

    assert run(["evaluate", str(folder), "--episodes", "3"]) == 0

    lines = capsys.readouterr().out.splitlines()
    tables = [line for line in lines if "edition" not in line and "written" not in line]
    assert max(map(len, tables)) <= width
    words = [line.split() for line in lines]
    for red in ("B_lineAgent", "RedMeanderAgent", "SleepAgent"):
        rows = [row for row in words if row[:1] == [red]]
        assert len(rows) == (5 if width == 60 else 3)  # scores, loss by cause, compliance
        assert all(value in "±-" or float(value) is not None for row in rows for value in row[1:])

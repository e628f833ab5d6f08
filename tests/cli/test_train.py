"""`cagepool train`: output, interrupts, full disks, settings and help."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from cagepool import runs
from cagepool.cli.main import run
from cagepool.policy.load import load
from cagepool.train.config import TrainConfig
from tests.cli.command import PLAIN
from tests.cli.short_training import SHORT_FLAGS, Capture
from tests.environment import LIMIT_S, environ_without_coverage
from tests.train.run_results import run_results

ENDLESS = ("--total-episodes", "1000000", "--checkpoint-seconds", "1000000")
TABLE_WORDS = (
    *("of 1,000,000", "steps/s", "return", "wasted fixes per episode", "evaluation", "losses"),
)
LIMITED_FILE_SIZE = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
from cagepool.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


@pytest.fixture(autouse=True)
def plain_output(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PLAIN.items():
        monkeypatch.setenv(name, value)


def start_python(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, *arguments],
        env=environ_without_coverage(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def test_without_a_terminal_a_run_prints_plain_lines_and_the_next_commands(
    tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "run"

    assert run(["train", *SHORT_FLAGS, "--total-episodes", "30", "--out", str(path)]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"run folder: {path}"
    line_pattern = (
        r"30/30 episodes  [\d,]+ steps/s  return -?\d+\.\d\d ± \d+\.\d\d  entropy .* left"
    )
    assert any(re.fullmatch(line_pattern, line) for line in lines)
    evaluation = "evaluation after 30 episodes: greedy return on other seeds -"
    assert any(line.startswith(evaluation) for line in lines)
    assert lines[-2:] == [
        f"evaluate it with: cagepool evaluate {path}",
        f"write a report with: cagepool report {path}",
    ]
    assert "\x1b" not in "".join(lines)
    metrics = runs.open_run(path).metrics()
    assert (metrics["episodes"][-1], metrics["steps"][-1]) == (30, 270)
    assert runs.open_run(path).settings["env"]["n_envs"] == 7
    load(path)


def test_a_terminal_shows_a_live_table_and_an_interrupt_writes_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "run"
    terminal, process_end = pty.openpty()
    command = [
        "train",
        *SHORT_FLAGS,
        *ENDLESS,
        "--async",
        "--order",
        "reverse",
        "--no-early-stopping",
        "--out",
        str(path),
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "cagepool", *command],
        stdout=process_end,
        stderr=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name != "FORCE_COLOR"}
        | {"TERM": "xterm"},
    ) as process:
        os.close(process_end)
        output = read_terminal(terminal, until=TABLE_WORDS)  # some need an episode to end
        process.send_signal(signal.SIGINT)
        output += read_terminal(terminal)
        _, errors = process.communicate(timeout=LIMIT_S)

    assert (process.returncode, errors) == (130, b"")
    assert all(words in output for words in TABLE_WORDS)
    assert "\x1b[" in output
    assert f"stopped; resume with: cagepool train --resume {path}" in output
    last = runs.open_run(path).checkpoint("last")
    assert last.state["update"] == runs.open_run(path).metrics()["update"][-1]
    assert not last.state["finished"]


def read_terminal(terminal: int, until: tuple[str, ...] = ()) -> str:
    """Output on a terminal until it contains all words, or the process has closed it."""
    text = ""
    while not until or not all(words in text for words in until):
        try:
            text += os.read(terminal, 4096).decode(errors="replace")
        except OSError:  # Linux: the other end is closed
            os.close(terminal)
            break
    return text


def test_a_full_disk_is_reported_and_leaves_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "run"
    settings = ("train", *SHORT_FLAGS, "--total-episodes", "1000000", "--checkpoint-seconds", "0.1")
    with start_python("-c", LIMITED_FILE_SIZE, *settings, "--out", str(path)) as process:
        _, errors = process.communicate(timeout=LIMIT_S)

    assert process.returncode == 1
    (sentence,) = errors.splitlines()
    assert sentence.startswith("cagepool: the run had to stop: [Errno 27]")
    assert sentence.endswith(f"cagepool train --resume {path}")
    checkpoint = runs.open_run(path).checkpoint("last")
    assert checkpoint.state["update"] > 1
    load(path, "last")


def test_a_stopped_run_resumes_to_the_results_of_an_uninterrupted_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    settings = [*SHORT_FLAGS, "--total-episodes", "60", "--seed", "4"]
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    assert run(["train", *settings, "--out", str(whole)]) == 0
    with monkeypatch.context() as patch:
        patch.setattr("cagepool.cli.display.TrainDisplay.on_update", interrupt_at(3))
        assert run(["train", *settings, "--out", str(stopped)]) == 130
    assert f"stopped; resume with: cagepool train --resume {stopped}" in capsys.readouterr().out

    assert run(["train", "--resume", str(stopped), "--seed", "4"]) == 0

    assert run_results(stopped) == run_results(whole)


def interrupt_at(update: int) -> Callable[[Any, Any], None]:
    def on_update(_display: Any, row: Any) -> None:
        if row["update"] == update:
            signal.raise_signal(signal.SIGINT)

    return on_update


def test_flags_override_the_settings_file_which_overrides_the_preset(tmp_path: Path) -> None:
    config = {
        "env": {"n_envs": 3, "max_steps": 5},
        "ppo": {"update_steps": 5},
        "run": {"total_episodes": 12, "n_evals": 0, "n_eval_episodes": 2},
    }
    (tmp_path / "mine.json").write_text(json.dumps(config))
    flags = ["--config", str(tmp_path / "mine.json"), "--n-envs", "4"]

    assert run(["train", "--preset", "best", *flags, "--out", str(tmp_path / "a")]) == 0
    again = ["--config", str(tmp_path / "a" / "config.json"), "--out", str(tmp_path / "b")]
    assert run(["train", *again]) == 0

    settings = runs.open_run(tmp_path / "a").settings
    assert (settings["env"]["n_envs"], settings["run"]["total_episodes"]) == (4, 12)
    assert settings["ppo"]["n_minibatches"] != 4  # of the preset
    assert runs.open_run(tmp_path / "b").settings == settings
    assert run_results(tmp_path / "b") == run_results(tmp_path / "a")


def test_the_help_has_every_flag_in_its_group(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["train", "--help"])

    assert ended.value.code == 0
    out = capsys.readouterr().out
    for flag in (
        "--n-envs", "--total-episodes", "--red-agent", "--update-steps", "--max-steps", "--seed",
        "--edition", "--backend", "--env", "--out", "--resume", "--async", "--config", "--preset",
        "--learning-rate", "--gamma", "--clip-range", "--ent-coef", "--hidden",
        "--order", "--actions",
    ):  # fmt: skip
        assert re.search(rf"{flag}\b", out), flag
    groups = re.findall(r"\W (env|ppo|features|order|run) options\W", out)
    assert groups == ["env", "ppo", "features", "order", "run"]
    assert "Episodes in total. Exactly this many are played." in " ".join(out.split())
    assert "{auto,native,sync,pipes,workers,ray}" in out
    assert "--red-agent {mix,B_lineAgent,RedMeanderAgent,SleepAgent}[+...]" in out
    assert "None}" not in out


def test_the_help_of_every_switch_says_what_turning_it_off_does(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        run(["train", "--help"])

    text = re.sub(r"[│\s]+", " ", capsys.readouterr().out)
    switches = re.findall(r"--no-[a-z-]+ (.*?) \(default: (?:True|False)\)", text)
    settings = [get_type_hints(group) for group in get_type_hints(TrainConfig).values()]
    assert len(switches) == sum(hint is bool for group in settings for hint in group.values())
    assert all("Off: " in help_text for help_text in switches)


@pytest.mark.parametrize(
    ("env", "backend"),
    [("CartPole-v1", "sync"), ("tests.train.toy_envs:Recall", "workers")],
)
def test_other_environments_can_be_trained(tmp_path: Path, env: str, backend: str) -> None:
    path = tmp_path / "run"
    flags = ("--env", env, "--backend", backend, "--total-episodes", "25", "--out", str(path))

    assert run(["train", *SHORT_FLAGS, *flags]) == 0

    metrics = runs.open_run(path).metrics()
    assert metrics["episodes"][-1] == 25
    assert len(runs.open_run(path).evaluations()["score"]) >= 1
    assert load(path).act([[0.0, 0.0, 0.0, 0.0]]).shape == (1,)

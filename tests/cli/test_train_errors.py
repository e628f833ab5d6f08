"""Errors of `cagepool train`, each in one sentence."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cagepool import runs
from cagepool.cli.main import run
from tests.cli.short_training import SHORT_FLAGS, Capture


def error_of(capsys: Capture, *arguments: str) -> str:
    """Error message of a call."""
    capsys.readouterr()
    assert run(["train", *arguments]) == 2
    out, errors = capsys.readouterr()
    (sentence,) = errors.splitlines()
    assert sentence.startswith("cagepool: ")
    assert "episodes  " not in out  # nothing was trained
    return sentence


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--red-agent", "nobody"), "B_lineAgent, RedMeanderAgent, SleepAgent"),
        (("--edition", "1"), "2.1, leaderboard"),
        (("--backend", "dask"), "auto, native, sync, pipes, workers"),
        (("--actions", "few"), "all, possible, reduced, core"),
        (("--n-envs", "0"), "--n-envs must be at least 1, got 0"),
        (("--gamma", "2"), "--gamma must be from 0 to 1, got 2.0"),
        (("--preset", "x"), "--preset must be one of"),
        (("--env", "Nothing-v0"), "an id that Gymnasium knows, or module:function"),
        (("--env", "CartPole-v1", "--backend", "native"), "plays CAGE-2 only"),
        (("--learning-rate", "1e30", "--max-grad-norm", "1e30"), "must be finite"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_setting_is_refused_and_leaves_no_folder(
    tmp_path: Path, capsys: Capture, flags: tuple[str, ...], words: str
) -> None:
    path = tmp_path / "run"
    if "must be finite" not in words:
        assert words in error_of(capsys, *flags, "--out", str(path))
        assert not path.exists()
        return
    assert run(["train", *SHORT_FLAGS, "--total-episodes", "99", *flags, "--out", str(path)]) == 2
    assert words in capsys.readouterr().err
    assert path.exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "--config must be a JSON file"),
        ("[]", "--config must be a JSON file of settings"),
        ('{"settings": 3}', "--config must be a JSON file of settings"),
        ('{"n_envs": 3}', "groups of settings must be among env, ppo, features, order, run"),
        ('{"env": 3}', "env must be a table of settings, got 3"),
        ('{"env": {"n_env": 3}}', "settings of env must be among"),
        ('{"env": {"n_envs": "3"}}', "env.n_envs must be of type int, got '3'"),
        ('{"ppo": {"gamma": 3}}', "ppo.gamma must be from 0 to 1, got 3"),
    ],
)
def test_a_wrong_file_of_settings_is_refused(
    tmp_path: Path, capsys: Capture, content: str, words: str
) -> None:
    (tmp_path / "mine.json").write_text(content)

    assert words in error_of(capsys, "--config", str(tmp_path / "mine.json"))


def test_a_file_of_settings_that_is_not_there_is_refused(capsys: Capture) -> None:
    assert "--config must be a JSON file" in error_of(capsys, "--config", "nowhere.json")


def test_a_folder_in_use_or_unwritable_is_refused_before_training(
    tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "file").touch()

    assert "a folder of its own" in error_of(capsys, "--out", str(tmp_path))
    assert "must be writable" in error_of(capsys, "--out", str(tmp_path / "file" / "run"))


def test_a_resumed_run_keeps_its_settings_and_its_folder(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "run"
    assert run(["train", *SHORT_FLAGS, "--total-episodes", "14", "--out", str(path)]) == 0
    resumed = ("--resume", str(path))

    changed = error_of(capsys, *resumed, "--total-episodes", "20", "--gamma", "0.5")
    assert "must keep its settings" in changed
    assert "--gamma 0.5 (it has 0.99), --total-episodes 20 (it has 14)" in changed
    # Also if the value is the default of a new run.
    assert "--n-envs 100 (it has 7)" in error_of(capsys, *resumed, "--n-envs", "100")
    assert "must keep its settings" in error_of(capsys, *resumed, "--preset", "best")
    assert "stays in its folder" in error_of(capsys, *resumed, "--out", str(tmp_path / "other"))
    assert run(["train", *resumed, "--n-envs", "7"]) == 0


def cut_state(path: Path) -> None:
    (state,) = path.glob("checkpoints/last-*/state.json")
    state.write_text(state.read_text()[:50])


def flip_a_byte(path: Path) -> None:
    (weights,) = path.glob("checkpoints/last-*/weights.safetensors")
    content = bytearray(weights.read_bytes())
    content[len(content) // 2] ^= 4
    weights.write_bytes(content)


def make_newer(path: Path) -> None:
    config = json.loads((path / runs.CONFIG).read_text())
    (path / runs.CONFIG).write_text(json.dumps({**config, "format": 99}))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (cut_state, "state.json is damaged"),
        (flip_a_byte, "its weights are not those that were saved"),
        (make_newer, "has format 99, this cagepool reads up to 1"),
        (lambda path: (path / runs.CONFIG).unlink(), "must be a folder with config.json"),
        (lambda path: (path / runs.METRICS).write_text("update\nx\n"), "metrics.csv is damaged"),
    ],
    ids=["cut", "flipped", "newer", "no run", "table"],
)
def test_a_damaged_run_is_not_resumed(
    tmp_path: Path, capsys: Capture, damage: Callable[[Path], Any], words: str
) -> None:
    path = tmp_path / "run"
    assert run(["train", *SHORT_FLAGS, "--total-episodes", "14", "--out", str(path)]) == 0
    damage(path)

    assert words in error_of(capsys, "--resume", str(path))
    assert path.exists()

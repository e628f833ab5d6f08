"""Profiles on the command line, as a person makes them."""

import json
import re
from pathlib import Path

import pytest

from cagepool.cli.main import run
from cagepool.runs import open_run
from tests.cli.short_training import SHORT_FLAGS, Capture


def test_a_profile_of_training_adds_up_in_table_and_file(tmp_path: Path, capsys: Capture) -> None:
    out, flame_graph = tmp_path / "profile.json", tmp_path / "flame.json"
    files = ("--out", str(out), "--speedscope", str(flame_graph))
    kept = ("--out", str(tmp_path / "run"))
    assert (
        run(["profile", *files, "--", "train", "--total-episodes", "21", *SHORT_FLAGS, *kept]) == 0
    )

    written = json.loads(out.read_text())
    assert written["kind"] == "train"
    assert sum(written["stages"].values()) == pytest.approx(written["wall_seconds"], rel=0.02)
    updates = open_run(tmp_path / "run").metrics()["update"]
    assert written["overhead"]["entries"] > len(updates)
    lines = capsys.readouterr().out.splitlines()
    shares = [float(share) for line in lines for share in re.findall(r"([\d.]+) % ", line)]
    assert shares[-1] == 100.0
    assert sum(shares[:-1]) == pytest.approx(100.0, abs=0.05 * len(shares))  # rounded each
    assert json.loads(flame_graph.read_text())["exporter"] == "cagepool"


def test_a_profile_of_steps_is_printed_in_80_columns(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["profile", "--", "step", "--n-envs", "10", "--steps", "200"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert "0.0 messages, 0 bytes in messages, 2,290 bytes in arrays" in " ".join(text.split())


def test_the_two_hyphens_may_be_forgotten(tmp_path: Path) -> None:
    out = tmp_path / "profile.json"
    assert run(["profile", "--out", str(out), "step", "--n-envs", "3", "--steps", "5"]) == 0
    assert json.loads(out.read_text())["settings"]["n_envs"] == 3


def test_a_run_that_nobody_asked_for_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["profile", "--", "train", "--total-episodes", "7", *SHORT_FLAGS]) == 0
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_run_that_cannot_begin_is_free_again(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert run(["profile", "--", "train", "--env", "NoSuchEnv-v0", "--out", str(folder)]) == 2
    assert not folder.exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "a profile needs train or step .*, got nothing"),
        (("--", "search"), "a profile needs train or step .*, got search"),
        (("--out", "no-folder/x", "--", "step"), "--out must be a file in .*, got no-folder/x"),
        (("--speedscope", ".", "--", "step"), "--speedscope must be a file in .*, got ."),
        (("--", "train", "--n-envs", "0"), "--n-envs must be at least 1, got 0"),
        (("--", "step", "--steps", "0"), "steps must be at least 1, got 0"),
        (("--", "step", "--true-state", "now"), "true_state must be every, .* got 'now'"),
    ],
)
def test_a_wrong_call_is_refused_in_one_sentence(
    arguments: tuple[str, ...], sentence: str, capsys: Capture
) -> None:
    assert run(["profile", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(f"cagepool: {sentence}\n", said.err)

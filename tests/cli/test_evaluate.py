"""`cagepool evaluate`, also as docs/evaluation.md shows it, and `cagepool play` of a policy."""

import json
import re
from pathlib import Path

import pytest

from cagepool.cli import evaluate as command
from cagepool.cli.main import run
from cagepool.cyborg import locate
from cagepool.evaluate import protocol
from cagepool.evaluate.rollout import NativeEngine
from tests.cli.command import cagepool, python
from tests.evaluate.folders import add_checkpoint, make_run

FEW = ("--episodes", "20")
PAGE = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text(encoding="utf-8")
OWN_POLICIES, EXCHANGE, AGENT, PLAIN = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "80")
    return make_run(tmp_path / "mine")


def test_scores_are_printed_beside_published_ones_and_written(folder: Path) -> None:
    done = cagepool("evaluate", str(folder), *FEW)

    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    assert lines[0] == "mine (best-000002), edition 2.1, 20 episodes against each red, seed 153"
    assert "    KEEP" in {line[:8] for line in lines}
    assert "  KEEP: -58.46 (measured, 100 episodes)" in lines
    assert any(line.split() == ["KEEP", "-3.82", "-6.71", "-14.12"] for line in lines)
    assert "mean loss per episode of 100 steps, by cause" in lines
    assert lines[-1] == f"written to {folder}: evaluation.json, games.json"
    assert max(len(line) for line in lines[:-1]) <= 80
    read = json.loads((folder / "evaluation.json").read_text())
    for cell in [*read["scores"], read["total"]]:
        assert f"{cell['mean']:.2f} ± {cell['standard_error']:.2f}" in done.stdout


@pytest.mark.parametrize("name", ["restore_user1", "Cautious"])
def test_the_policies_of_the_page_are_found_beside_the_user(tmp_path: Path, name: str) -> None:
    (tmp_path / "my_policies.py").write_text(OWN_POLICIES, encoding="utf-8")

    done = cagepool("evaluate", f"my_policies:{name}", "--episodes", "2", cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"my_policies:{name}, edition 2.1, 2 episodes")


def test_the_printed_json_is_the_written_one(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["evaluate", str(folder), *FEW, "--json"]) == 0

    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((folder / "evaluation.json").read_text())
    assert printed["episodes"] == 20


def test_a_scripted_defender_is_evaluated_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    assert run(["evaluate", "restore-rotation", *FEW, "--edition", "leaderboard"]) == 0

    printed = capsys.readouterr().out
    assert "Cardiff: -54.57 (leaderboard)" in printed
    assert not [*tmp_path.iterdir()]


def test_another_edition_than_in_training_is_printed_and_written_to_its_own_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["evaluate", str(folder), *FEW, "--edition", "leaderboard"]) == 0

    printed = capsys.readouterr().out
    assert "edition leaderboard, 20 episodes" in printed
    assert "The policy was trained on another edition, 2.1." in printed
    assert f"written to {folder}: evaluation-leaderboard.json" in printed
    assert not (folder / "evaluation.json").exists()


def test_the_last_checkpoint_is_evaluated_on_request(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_checkpoint(folder, network=3, kind="last", update=7)

    assert run(["evaluate", str(folder), *FEW, "--which", "last"]) == 0

    assert capsys.readouterr().out.startswith("mine (last-000007), edition 2.1")


def test_compliance_with_an_order_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_run(tmp_path / "ordered", order="reverse", order_input=True)

    assert run(["evaluate", str(folder), *FEW]) == 0

    printed = capsys.readouterr().out
    assert "compliance with the order reverse" in printed
    assert "wasted fixes per episode" in " ".join(printed.split())  # however it wraps


def test_scores_in_cyborg_are_printed_beside_native_ones(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without CybORG, a stand-in for it; the real one is played in tests/cyborg/test_engine.py."""

    class Stand(NativeEngine):
        name = "cyborg"

        def __init__(self, _checkout: str | None) -> None:
            pass

    monkeypatch.setattr(command, "CybORGEngine", Stand)
    monkeypatch.setattr(command, "EPISODES", {"cyborg": 20})
    monkeypatch.setattr(protocol, "EPISODES", 50)

    assert run(["evaluate", str(folder), "--env", "cyborg"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "mine (best-000002) in CybORG, edition 2.1, 20 episodes against each red, seed 153"
    )
    assert any(re.match(r" +difference( +[-+]\d\.\d s\.e\.){3}", line) for line in lines)
    assert any(re.match(r"  native: -.* ± .*, 50 episodes", line) for line in lines)
    assert lines[-1] == f"written to {folder}: evaluation-cyborg.json"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("hope",), "a defender must be .* one of sleep, .*; got 'hope'"),
        (("/",), "a run must be a folder with config.json, / has none"),
        (("sleep", "--edition", "3"), "--edition must be one of 2.1, leaderboard; got '3'"),
        (("sleep", "--episodes", "0"), "--episodes must be from 2, .* got 0"),
        (("sleep", "--seed", "-1"), "--seed must be at least 0, got -1"),
        (
            ("sleep", "--env", "cyborg", "--checkout", "/"),
            "a checkout of CAGE Challenge 2 must hold CybORG, got /",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_invalid_value_is_refused_in_one_sentence(
    arguments: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["evaluate", *arguments]) == 2

    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.fullmatch(f"cagepool: {sentence}\n", printed.err)


def test_a_folder_that_cannot_be_written_is_reported_after_the_table(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "evaluation.json").mkdir()  # nobody, not even root, can put a file in its place

    assert run(["evaluate", str(folder), *FEW]) == 2

    printed = capsys.readouterr()
    assert "total of the nine cells" in printed.out
    assert printed.err.startswith(f"cagepool: a run folder must be writable, {folder} is not:")


def test_play_takes_a_run_folder_and_its_edition(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_run(tmp_path / "mine", edition="leaderboard")

    assert run(["play", "--blue", str(folder), *FEW, "--red", "b_line", "--verbose"]) == 0

    printed = capsys.readouterr().out
    assert f"{folder}, edition leaderboard, 20 episodes" in printed
    assert "total reward: -" in printed


@pytest.fixture
def _run_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_run(Path("runs/mine"))


@pytest.mark.usefixtures("_run_of_the_page")
def test_the_lines_of_the_page_for_cyborgs_script_make_an_agent() -> None:
    done = python("-c", EXCHANGE + "print(agent.get_action([0] * 52, 145))")

    assert 0 <= int(done.stdout) < 145


@pytest.mark.usefixtures("_run_of_the_page")
def test_the_script_of_the_page_prints_a_score_and_the_loss() -> None:
    done = python("-c", PLAIN.replace("episodes=1000", "episodes=20"))

    assert done.stdout.startswith("Score(mean=-")
    assert "'user_hosts': " in done.stdout


@pytest.mark.parity
@pytest.mark.usefixtures("_run_of_the_page")
def test_the_agent_of_the_page_plays_in_a_custom_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(locate.package_folder(locate.load()).parent), prepend=":")

    done = python("-c", AGENT.replace("range(10)", "range(2)").replace("range(100)", "range(20)"))

    assert float(done.stdout) <= 0

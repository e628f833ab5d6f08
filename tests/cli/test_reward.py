"""`cagepool train --reward`: a function in the current folder, and the official evaluation."""

import json
import sys
from pathlib import Path

import pytest

from cagepool.cli.main import run
from tests.cli.short_training import Capture

FLAGS = (
    "--n-envs", "4", "--total-episodes", "8", "--update-steps", "5", "--hidden", "4",
    "--n-evals", "0", "--max-steps", "10",
)  # fmt: skip
FUNCTION = """
def punish_restores(step):
    return step.reward - 2.0 * (step.moves.blue == "Restore")
"""


@pytest.fixture(autouse=True)
def current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A current folder that is not on the module search path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    monkeypatch.delitem(sys.modules, "shaped", raising=False)


def test_a_function_beside_the_user_is_trained_with_and_evaluated_officially(
    capsys: Capture,
) -> None:
    Path("shaped.py").write_text(FUNCTION, encoding="utf-8")

    assert run(["train", "--reward", "shaped:punish_restores", "--out", "run", *FLAGS]) == 0

    settings = json.loads(Path("run/config.json").read_text(encoding="utf-8"))["settings"]
    assert settings["env"]["reward"] == "shaped:punish_restores"
    Path("shaped.py").unlink()  # an evaluation does not need it
    capsys.readouterr()
    assert run(["evaluate", "run", "--episodes", "3"]) == 0
    sentence = "The policy was trained with the reward function shaped:punish_restores; scores are"
    assert sentence in " ".join(capsys.readouterr().out.split())
    assert run(["evaluate", "sleep", "--episodes", "3"]) == 0
    assert "reward function" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("source", "name", "sentence"),
    [
        ("", "shapes:f", "--reward names the module 'shapes', which does not exist"),
        (
            FUNCTION,
            "shaped:punish_restore",
            "--reward names 'punish_restore', which the module 'shaped' does not have, did you mean punish_restores?",  # noqa: E501
        ),
        (
            "raise OSError('gone')",
            "shaped:f",
            "--reward names the module 'shaped', which raises OSError: gone (shaped.py, line 1)",
        ),
        (
            "def f(step):\n    return step.reward[1:]",
            "shaped:f",
            "--reward function shaped:f must return an array of 2 finite numbers, got shape (1,)",
        ),
        (
            "def f(step):\n    return 1 / 0",
            "shaped:f",
            "--reward function shaped:f raised ZeroDivisionError: division by zero (shaped.py, line 2)",  # noqa: E501
        ),
    ],
    ids=["no module", "no function", "module raises", "wrong shape", "function raises"],
)
def test_what_is_wrong_with_a_function_is_said_in_one_sentence(
    source: str, name: str, sentence: str, capsys: Capture
) -> None:
    Path("shaped.py").write_text(source, encoding="utf-8")

    assert run(["train", "--reward", name, "--out", "run", *FLAGS]) == 2

    assert capsys.readouterr().err == f"cagepool: {sentence}\n"
    assert not Path("run").exists()

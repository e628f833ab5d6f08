"""No command executes code of a folder that a stranger wrote, unless the user says so."""

import pickle
import sys
from pathlib import Path

import pytest

from cagepool.cli.main import run
from tests.evaluate.folders import make_run


class _Mark:
    """Unpickling it creates a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self._path,)


def hide_pickle(folder: Path, executed: Path) -> None:
    """Make a folder look like an RLlib checkpoint whose pickle creates the file `executed`."""
    folder.mkdir(exist_ok=True)
    (folder / "rllib_checkpoint.json").write_text("{}")
    (folder / "class_and_ctor_args.pkl").write_bytes(pickle.dumps(_Mark(executed)))


COMMANDS = pytest.mark.parametrize(
    "command",
    [("evaluate", "--episodes", "2"), ("play", "--episodes", "2", "--blue")],
    ids=["evaluate", "play"],
)


@COMMANDS
def test_a_run_folder_with_a_hidden_pickle_is_played_without_loading_it(
    command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, executed = make_run(tmp_path / "run"), tmp_path / "executed"
    hide_pickle(folder, executed)

    assert run([*command, str(folder)]) == 0

    assert not executed.exists()
    assert "mean total reward" in capsys.readouterr().out


@COMMANDS
def test_pickles_are_loaded_only_on_request(
    command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, executed = tmp_path / "foreign", tmp_path / "executed"
    hide_pickle(folder, executed)

    assert run([*command, str(folder)]) == 2

    assert not executed.exists()
    sentence = f"cagepool: {folder} contains pickles, and loading a pickle executes its code: "
    assert capsys.readouterr().err.startswith(sentence + "pass --trust-pickle")


def make_code_run(folder: Path, marker: Path) -> None:
    """A run whose environment is a function of `code_of_stranger`, which creates a file."""
    folder.parent.mkdir(exist_ok=True)
    (folder.parent / "code_of_stranger.py").write_text(
        f"import pathlib\npathlib.Path({str(marker)!r}).touch()\n"
    )
    make_run(folder, env="code_of_stranger:make", backend="sync")


@pytest.mark.parametrize("source", ["--resume", "--config"])
def test_code_that_a_file_names_must_be_named_by_the_user(
    source: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder, executed = tmp_path / "foreign" / "run", tmp_path / "executed"
    make_code_run(folder, executed)
    monkeypatch.chdir(tmp_path / "foreign")
    monkeypatch.syspath_prepend(str(tmp_path / "foreign"))
    monkeypatch.delitem(sys.modules, "code_of_stranger", raising=False)
    file = "run" if source == "--resume" else "run/config.json"

    assert run(["train", source, file]) == 2

    assert not executed.exists()
    assert capsys.readouterr().err == (
        f"cagepool: {file} names code to be called, code_of_stranger:make: if you trust it, add "
        "--env code_of_stranger:make\n"
    )
    assert run(["train", source, file, "--env", "code_of_stranger:make"]) == 2
    assert executed.exists()  # it has no function `make`, but it was imported

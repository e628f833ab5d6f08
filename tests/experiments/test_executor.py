"""Trainings in processes: events, failures, stops, and code that does not behave."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cagepool import runs
from cagepool.experiments import worker
from cagepool.experiments.executor import ProcessExecutor, TrainingError
from cagepool.experiments.folder import Training
from cagepool.experiments.listener import Listener
from cagepool.experiments.worker import TrainFunction
from cagepool.train.config import TrainConfig
from cagepool.train.tracking import Row
from tests.environment import LIMIT_S
from tests.experiments import toy_training

SETTINGS = TrainConfig().as_dict()
REPOSITORY = Path(__file__).parents[2]
INTERRUPTED = """
import signal, sys
from pathlib import Path
from cagepool.cli.display import CommandConsole
from cagepool.cli.train import stop_on_interrupt
from tests.experiments import toy_training
from tests.experiments.test_executor import execute
signal.signal(signal.SIGINT, signal.default_int_handler)
with stop_on_interrupt(CommandConsole()) as should_stop:
    print("ready", flush=True)
    assert execute(Path(sys.argv[1]), toy_training.wait_for_stop, should_stop=should_stop) is None
"""


class Recorder(Listener):
    def __init__(self) -> None:
        self.events: list[str] = []

    def on_start(self, _training: Training) -> None:
        self.events.append("start")

    def on_update(self, _training: Training, row: Row) -> None:
        self.events.append(f"{row['episodes']:.0f} episodes")

    def on_end(self, _training: Training) -> None:
        self.events.append("end")

    def on_failure(self, _training: Training, message: str) -> None:
        self.events.append(message)


def toy(path: Path) -> Training:
    return Training(name="toy", experiment=path, run="a/toy", settings=SETTINGS)


def execute(
    path: Path, train: TrainFunction, listener: Any = None, should_stop: Any = lambda: False
) -> int | None:
    with ProcessExecutor(train, listener or Listener(), 1) as executor:
        executor.submit(toy(path))
        return executor.wait(toy(path), should_stop)


def test_a_training_reports_its_updates_and_its_end(tmp_path: Path) -> None:
    recorder = Recorder()
    assert execute(tmp_path, toy_training.finish, recorder) == 0
    assert recorder.events == ["start", "7 episodes", "end"]


@pytest.mark.parametrize("train", [toy_training.print_and_read, toy_training.write_garbage])
def test_foreign_output_does_not_disturb_a_training(tmp_path: Path, train: TrainFunction) -> None:
    assert execute(tmp_path, train) == 0


def test_a_python_that_prints_when_it_starts_does_not_disturb_a_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('hello')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert execute(tmp_path / "out", toy_training.finish) == 0


@pytest.mark.parametrize("name", ["pickle", "msgspec", "json"])
def test_modules_of_the_current_folder_are_not_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / f"{name}.py").write_text("raise SystemExit('executed')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(REPOSITORY), *filter(None, sys.path)])
    assert execute(tmp_path / "out", toy_training.finish) == 0


def test_a_worker_finds_the_modules_that_its_caller_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_here.py").write_text("def train(*_): return True\n")
    monkeypatch.syspath_prepend(tmp_path)
    import only_here  # type: ignore[import-not-found] # noqa: PLC0415

    assert execute(tmp_path / "out", only_here.train) == 0


@pytest.mark.parametrize(
    ("train", "message"),
    [
        (toy_training.raise_error, "KeyError: 'no\\nreward'"),
        (toy_training.exit_at_once, "its process ended with exit code 0: gone"),
        (toy_training.die_beside_a_child, "its process ended with exit code 3"),
    ],
)
def test_a_training_that_fails_is_named_in_one_line(
    tmp_path: Path, train: TrainFunction, message: str
) -> None:
    recorder = Recorder()
    with pytest.raises(TrainingError) as raised:
        execute(tmp_path, train, recorder)
    assert str(raised.value) == message
    assert recorder.events == ["start", message]


def test_the_traceback_of_a_failure_is_not_written_through_a_link(tmp_path: Path) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    error = toy(tmp_path).open_or_create().path / worker.ERROR
    error.symlink_to(mine)
    with pytest.raises(TrainingError):
        execute(tmp_path, toy_training.raise_error)
    assert mine.read_text() == "mine"
    assert "KeyError" in error.read_text()
    assert not error.is_symlink()
    assert execute(tmp_path, toy_training.finish) == 0
    assert not error.exists()


@pytest.mark.parametrize("linked", ["a", "a/toy"])
def test_a_link_in_place_of_a_training_is_refused(tmp_path: Path, linked: str) -> None:
    elsewhere = toy(tmp_path / "elsewhere")
    elsewhere.open_or_create()
    (tmp_path / "here" / linked).parent.mkdir(parents=True)
    (tmp_path / "here" / linked).symlink_to(elsewhere.experiment / linked)
    with pytest.raises(TrainingError, match="must be a folder, it is a link"):
        execute(tmp_path / "here", toy_training.finish)


def test_a_run_with_other_settings_in_place_of_a_training_is_refused(tmp_path: Path) -> None:
    runs.create(toy(tmp_path).path, TrainConfig().with_settings(seed=5).as_dict(), "0")
    with pytest.raises(TrainingError, match="it holds a run with other settings"):
        execute(tmp_path, toy_training.finish)


def test_an_interrupt_stops_all_trainings_and_starts_no_other(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )
    config = toy(tmp_path).path / runs.CONFIG
    deadline = time.monotonic() + LIMIT_S
    while not config.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0
    assert "stopping" in output
    assert (toy(tmp_path).path / "stopped").exists()

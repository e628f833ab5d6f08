"""Sudden ends of a driver or of its cluster are reported, and no process is left behind."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from cagepool import runs
from cagepool.cli.main import run as command
from cagepool.train.ray import watchdog
from tests.environment import LIMIT_S
from tests.train.run_results import table_without_times
from tests.train.short_runs import SHORT, create_run, train_run

REPORT = "cagepool: the run had to stop: {}its Ray node died; resume with: it\n"


class StandIn:
    """A process that stands in for one of Ray's; its output goes to a file, as theirs do."""

    def __init__(self, output: Path, program: Path) -> None:
        with output.open("wb") as file:
            self.process = subprocess.Popen([program, "600"], stdout=file)

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """Session folder of a cluster."""
    folder = tmp_path / "session"
    folder.mkdir()
    return folder


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., StandIn]]:
    """Start a process of this name with its output in a folder."""
    sleep = shutil.which("sleep")
    assert sleep
    with ExitStack() as stack:

        def start_process(folder: Path, name: str = "worker") -> StandIn:
            program = tmp_path / name
            shutil.copy(sleep, program)
            process = StandIn(folder / f"{name}.out", program)
            stack.callback(process.close)
            return process

        yield start_process


class Driver:
    """A process with a watchdog, which goes on when a line is written to its standard input."""

    PROGRAM = """
import sys
from cagepool.train.ray.watchdog import Watchdog
dog = Watchdog(sys.argv[1] or None)
dog.set_remedy("resume with: it")
print("started", flush=True)
sys.stdin.readline()
dog.expect_end()
print("ending", flush=True)
sys.stdin.readline()
dog.close()
print("closed", flush=True)
"""

    def __init__(self, session: Path | None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", self.PROGRAM, str(session or "")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        self.wait_for("started")

    def wait_for(self, line: str) -> None:
        assert self.process.stdout
        assert self.process.stdout.readline() == f"{line}\n"

    def go_on(self, until: str) -> None:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.wait_for(until)

    def outcome(self) -> tuple[int, str, str]:
        """Exit code and outputs, after the end of the driver and of its watchdog."""
        code = self.process.wait(LIMIT_S)
        output, errors = self.process.communicate(timeout=LIMIT_S)
        return code, output, errors


def test_a_killed_driver_is_reported_and_its_cluster_killed(
    session: Path, tmp_path: Path, start: Callable[..., StandIn]
) -> None:
    ours, other = start(session), start(tmp_path, "other")
    driver = Driver(session)
    driver.process.kill()

    assert driver.outcome() == (-signal.SIGKILL, "", REPORT.format("its process was killed, or "))
    assert (ours.is_alive, other.is_alive) == (False, True)


def test_a_process_that_only_reads_a_log_of_the_cluster_is_left_alone(
    session: Path, start: Callable[..., StandIn]
) -> None:
    ours = start(session)
    driver = Driver(session)
    with (session / "worker.out").open("rb") as log:
        reader = subprocess.Popen(["sleep", "600"], stdin=log)
    driver.process.kill()
    driver.outcome()
    assert not ours.is_alive
    assert reader.poll() is None
    reader.kill()
    reader.wait()


def test_a_terminated_driver_reports_it(capfd: pytest.CaptureFixture[str]) -> None:
    with closing(watchdog.Watchdog(None)) as dog:
        dog.set_remedy("resume with: it")
        dog.report_termination()
        dog.expect_end()

    sentence = "cagepool: the run had to stop: its process was terminated; resume with: it\n"
    assert capfd.readouterr().err == sentence


@pytest.mark.parametrize("service", watchdog.SERVICES)
def test_a_dead_service_ends_the_driver_with_a_report(
    service: str, session: Path, start: Callable[..., StandIn]
) -> None:
    killed, ours = start(session, service), start(session)
    driver = Driver(session)
    killed.process.kill()

    assert driver.outcome() == (1, "", REPORT.format(""))
    assert not ours.is_alive


def test_a_driver_that_ends_as_it_should_reports_nothing_and_leaves_no_process(
    session: Path, start: Callable[..., StandIn]
) -> None:
    raylet, other = start(session, "raylet"), start(session)
    driver = Driver(session)
    driver.go_on("ending")
    raylet.close()  # as ray.shutdown does
    driver.go_on("closed")

    assert driver.outcome() == (0, "", "")
    assert not other.is_alive


def test_processes_of_a_cluster_that_was_running_before_are_left_alone(
    session: Path, start: Callable[..., StandIn]
) -> None:
    foreign = start(session, "raylet")
    driver = Driver(None)
    driver.process.kill()

    assert driver.outcome()[2] == REPORT.format("its process was killed, or ")
    assert foreign.is_alive


@pytest.mark.ray
@pytest.mark.soak  # the tests above have the same ends without Ray
def test_a_training_that_is_terminated_or_loses_its_raylet_resumes_to_the_same_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = SHORT.with_settings(total_episodes=4000)
    run = create_run(tmp_path / "run", config.with_settings(backend="ray"))

    assert end_training(run, int, signal.SIGTERM) == (143, "its process was terminated")
    assert end_training(run, raylet_of, signal.SIGKILL) == (1, "its Ray node died")

    assert command(["train", "--resume", str(run.path)]) == 0
    capsys.readouterr()
    expected = train_run(tmp_path / "expected", config)
    assert table_without_times(run.path / runs.METRICS) == table_without_times(
        expected / runs.METRICS
    )


def end_training(run: runs.Run, victim: Callable[[int], int], number: int) -> tuple[int, str]:
    """Train until the next checkpoint, then send a signal to a process of the training.

    Returns:
        Exit code of the training, and the reason in its report.
    """
    before = run.checkpoint_updates("last")
    driver = subprocess.Popen(
        [sys.executable, "-m", "cagepool", "train", "--resume", run.path],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    wait_until(lambda: driver.poll() is not None or run.checkpoint_updates("last") != before)
    assert driver.poll() is None, driver.communicate()
    cluster = children_of(driver.pid)
    cluster += children_of(raylet_of(driver.pid))
    os.kill(victim(driver.pid), number)
    _, errors = driver.communicate(timeout=LIMIT_S)

    remedy = f"resume from the last checkpoint with: cagepool train --resume {run.path}"
    report = re.fullmatch(rf"cagepool: the run had to stop: (.*); {re.escape(remedy)}\n", errors)
    assert report, errors
    assert not [process for process in cluster if executable_of(process)]
    assert not run.checkpoint("last").state["finished"]
    return driver.returncode, report[1]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def children_of(process: int) -> list[int]:
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def raylet_of(driver: int) -> int:
    """Process id of the raylet that a driver started."""
    (raylet,) = [p for p in children_of(driver) if executable_of(p) == "raylet"]
    return raylet


def executable_of(process: int) -> str:
    """Name of the program of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{process}/exe").readlink().name
    except OSError:
        return ""

"""Executors of the runs of a study: processes of this machine, or tasks of a Ray cluster."""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, Protocol

from cagepool import _optional
from cagepool._machine import usable_cores
from cagepool.runs.study_schema import StudyFile
from cagepool.study.folder import Task, open_training
from cagepool.study.run import play_run

POLL_SECONDS = 0.2  # between two calls of `should_stop`
# Libraries that would start threads of their own: each process has one core.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)


class StudyListener(Protocol):
    """Callbacks of a study."""

    def on_start(self, task: Task, /) -> None:
        """A run starts or resumes."""

    def on_episodes(self, task: Task, episodes: int, /) -> None:
        """A run has played so many episodes."""

    def on_end(self, task: Task, /) -> None:
        """A run is complete."""

    def on_failure(self, task: Task, message: str, /) -> None:
        """A run failed; the others go on."""


class StudyExecutor(Protocol):
    """Executes the runs of a study."""

    def execute(
        self, tasks: Sequence[Task], listener: StudyListener, should_stop: Callable[[], bool], /
    ) -> None:
        """Execute runs until all have ended, or until `should_stop` is true."""


def default_jobs() -> int:
    """Runs at a time: one per core that this process may use."""
    return max(1, int(usable_cores()))


class ProcessExecutor:
    """Executes each run in a process of its own, several at a time."""

    def __init__(self, path: Path, jobs: int | None = None) -> None:
        """Execute runs of the study in this folder; `jobs` none: one per core."""
        self._path = path
        self._jobs = jobs or default_jobs()
        self._events: queue.Queue[tuple[Task, dict[str, Any]]] = queue.Queue()
        self._processes: dict[Task, subprocess.Popen[str]] = {}
        self._failed: set[Task] = set()

    def execute(
        self, tasks: Sequence[Task], listener: StudyListener, should_stop: Callable[[], bool]
    ) -> None:
        """Execute runs; on a stop, those that have begun write a checkpoint first."""
        waiting = [*tasks]
        is_stopping = False
        try:
            while self._processes or (waiting and not is_stopping):
                while waiting and not is_stopping and len(self._processes) < self._jobs:
                    self._start(waiting[0])
                    listener.on_start(waiting.pop(0))
                with suppress(queue.Empty):
                    self._handle(*self._events.get(timeout=POLL_SECONDS), listener)
                if should_stop() and not is_stopping:
                    is_stopping = True
                    for process in self._processes.values():
                        _request_stop(process)
        finally:
            for process in self._processes.values():
                process.kill()
                process.wait()

    def _start(self, task: Task) -> None:
        module = "cagepool.study.worker"
        process = subprocess.Popen(
            [sys.executable, "-m", module, str(self._path), task.setting, str(task.seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **ONE_THREAD},
            start_new_session=True,  # Ctrl-C is for the parent, which asks its runs to stop
        )
        self._processes[task] = process
        threading.Thread(target=self._forward_events, args=(task, process), daemon=True).start()

    def _forward_events(self, task: Task, process: "subprocess.Popen[str]") -> None:
        assert process.stdout
        assert process.stderr
        errors: list[str] = []
        reader = threading.Thread(target=_read_lines, args=(process.stderr, errors), daemon=True)
        reader.start()
        for line in process.stdout:
            self._events.put((task, json.loads(line)))
        code = process.wait()
        reader.join()
        self._events.put((task, {"exit": code, "stderr": errors[-1] if errors else ""}))

    def _handle(self, task: Task, event: dict[str, Any], listener: StudyListener) -> None:
        if "episodes" in event:
            listener.on_episodes(task, event["episodes"])
        elif event.get("complete"):
            listener.on_end(task)
        elif "error" in event:
            self._failed.add(task)
            listener.on_failure(task, event["error"])
        elif "exit" in event:
            process = self._processes.pop(task)
            for pipe in (process.stdin, process.stdout, process.stderr):
                assert pipe
                with suppress(BrokenPipeError):
                    pipe.close()
            if event["exit"] and task not in self._failed:
                listener.on_failure(task, _death(event["exit"], event["stderr"]))


class RayStudyExecutor:
    """Executes runs as tasks of a Ray cluster, as many at a time as it has processors."""

    def __init__(self, path: Path, study: StudyFile, max_tasks: int) -> None:
        """Execute runs of this study; a local cluster has `max_tasks` processors."""
        self._path = path
        self._study = study
        self._max_tasks = max_tasks

    def execute(
        self, tasks: Sequence[Task], listener: StudyListener, should_stop: Callable[[], bool]
    ) -> None:
        """Execute runs; on a stop, those that have begun start again when they are resumed."""
        with _optional.require("backend ray", "ray", "ray"):
            from cagepool.train.ray.executor import RayExecutor  # noqa: PLC0415 - takes seconds

        play = partial(play_run, protocol=self._study.protocol)
        with RayExecutor(self._max_tasks, play) as executor:
            started = {}
            for task in tasks:
                started[task] = open_training(self._path, self._study, task.setting, task.seed)
                executor.submit(started[task])
                listener.on_start(task)
            for task, run in started.items():
                try:
                    restarts = executor.wait(run, should_stop)
                except Exception as error:  # noqa: BLE001 - whatever a task raised
                    listener.on_failure(task, one_line(error))
                    continue
                if restarts is None:
                    return
                listener.on_end(task)


def one_line(error: Exception) -> str:
    """An error as one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def _request_stop(process: "subprocess.Popen[str]") -> None:
    assert process.stdin
    with suppress(OSError):
        process.stdin.write("stop\n")
        process.stdin.flush()


def _read_lines(pipe: IO[str], lines: list[str]) -> None:
    lines += (line.strip() for line in pipe if line.strip())


def _death(code: int, last_line: str) -> str:
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    return f"its process {how}" + (f": {last_line}" if last_line else "")

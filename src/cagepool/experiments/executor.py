"""Executors of trainings: this process, processes of this machine, or tasks of a Ray cluster."""

import os
import queue
import shutil
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self, TypeAlias

from cagepool import _optional, runs
from cagepool._machine import usable_cores
from cagepool.experiments.folder import Training
from cagepool.experiments.listener import Listener, ListenerCallback, read_events
from cagepool.experiments.worker import TrainFunction, encode_task, one_line
from cagepool.train.tracking import NullCallback

POLL_SECONDS = 0.2  # between two calls of `should_stop`
EXIT_SECONDS = 1.0  # of a process that has closed its pipe, or of a pipe whose process has ended
MAX_ATTEMPTS = 10  # per training on a cluster
# Each process has one core: libraries must not start threads, and threads must not spin.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE",
}  # fmt: skip

ShouldStop: TypeAlias = Callable[[], bool]
Files: TypeAlias = dict[str, bytes]  # contents by relative path


class TrainingError(ValueError):
    """A training has failed."""


class Executor:
    """Executes trainings, perhaps several at a time. A context manager: none outlives its block."""

    def __init__(self, train: TrainFunction, listener: Listener, jobs: int | None = None) -> None:
        """Execute `jobs` trainings at a time, by default one per core; `train` is pickled."""
        self._train = train
        self._listener = listener
        self.jobs = jobs or usable_cores()

    def submit(self, training: Training) -> None:
        """Submit a training, which starts at once or when there is room."""
        raise NotImplementedError

    def wait(self, training: Training, should_stop: ShouldStop) -> int | None:
        """Wait for a training; returns how often it was restarted, or none if it was stopped.

        The first `should_stop` that is true stops all trainings; those in processes of this machine
        write a checkpoint first.
        """
        raise NotImplementedError

    def close(self) -> None:
        """End all trainings at once."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _failure(self, training: Training, message: str) -> TrainingError:
        self._listener.on_failure(training, message)
        return TrainingError(message)


class LocalExecutor(Executor):
    """Trains in this process, one training at a time; errors are raised as they are."""

    def submit(self, training: Training) -> None:
        """Open or create the run folder; `wait` trains."""
        training.open_or_create()

    def wait(self, training: Training, should_stop: ShouldStop) -> int | None:
        """Train."""
        self._listener.on_start(training)
        callback = ListenerCallback(self._listener, training)
        if not self._train(training.open_or_create(), callback, should_stop):
            return None
        self._listener.on_end(training)
        return 0


class ProcessExecutor(Executor):
    """Executes each training in a process of its own, several at a time."""

    def __init__(self, train: TrainFunction, listener: Listener, jobs: int | None = None) -> None:
        """As of `Executor`."""
        super().__init__(train, listener, jobs)
        self._waiting: deque[Training] = deque()
        self._running: dict[Training, _Process] = {}
        self._results: dict[Training, bool | TrainingError] = {}  # whether it is finished
        self._events: queue.SimpleQueue[tuple[Training, dict[str, Any]]] = queue.SimpleQueue()
        self._is_stopped = False

    def submit(self, training: Training) -> None:
        """Submit a training."""
        self._waiting.append(training)
        self._start_waiting()

    def wait(self, training: Training, should_stop: ShouldStop) -> int | None:
        """Wait for a training; on a stop, for all processes."""
        while training not in self._results and not self._is_stopped:
            self._handle_events()
            if should_stop():
                self._stop()
        result = self._results.get(training, False)
        if isinstance(result, TrainingError):
            raise result
        return 0 if result else None

    def close(self) -> None:
        """End all processes at once."""
        for process in self._running.values():
            process.close()

    def _stop(self) -> None:
        self._is_stopped = True
        for process in self._running.values():
            process.request_stop()
        while self._running:
            self._handle_events()

    def _start_waiting(self) -> None:
        while self._waiting and len(self._running) < self.jobs and not self._is_stopped:
            training = self._waiting.popleft()
            try:
                run = training.open_or_create()
            except ValueError as error:
                self._results[training] = self._failure(training, str(error))
                continue
            self._listener.on_start(training)
            task = encode_task(self._train, run.path)
            self._running[training] = _Process(task, partial(self._put_event, training))

    def _put_event(self, training: Training, event: dict[str, Any]) -> None:
        self._events.put((training, event))

    def _handle_events(self) -> None:
        """Wait for an event for `POLL_SECONDS`; notice processes that have ended."""
        with suppress(queue.Empty):
            self._handle(*self._events.get(timeout=POLL_SECONDS))
        ended = [one for one, process in self._running.items() if process.has_ended()]
        while not self._events.empty():  # before the results of processes that have ended
            self._handle(*self._events.get())
        for training in ended:
            process = self._running.pop(training)
            process.close()
            if training not in self._results:
                self._results[training] = self._failure(training, process.death())
        self._start_waiting()

    def _handle(self, training: Training, event: dict[str, Any]) -> None:
        if "row" in event:
            self._listener.on_update(training, event["row"])
        elif "error" in event:
            self._results[training] = self._failure(training, event["error"])
        elif "finished" in event:
            self._results[training] = event["finished"]
            if event["finished"]:
                self._listener.on_end(training)


class _Process:
    """The process of a training, its pipes, and the threads that read from them."""

    def __init__(self, task: bytes, put_event: Callable[[dict[str, Any]], None]) -> None:
        events, worker_events = os.pipe()
        # Not `-m`: the current folder is searched for modules only if this process does so.
        program = (
            f"import sys; sys.path[:] = {sys.path!r}; from cagepool.experiments import worker; "
            f"sys.exit(worker.main({worker_events}))"
        )
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", program],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=[worker_events],
                env={**os.environ, **ENVIRONMENT},
                start_new_session=True,  # Ctrl-C is for the parent, which asks it to stop
            )
        finally:
            os.close(worker_events)
        self._last_error = ""
        self._errors = threading.Thread(target=self._read_errors, daemon=True)
        self._errors.start()
        self._reader = threading.Thread(target=_forward, args=(events, put_event), daemon=True)
        self._reader.start()
        self._send(task)

    def has_ended(self) -> bool:
        """Whether the process has ended, and its events have been read."""
        if not self._reader.is_alive():
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(EXIT_SECONDS)
        if self._process.poll() is None:
            return False
        self._reader.join(EXIT_SECONDS)  # a process that it has forked may keep the pipe open
        return True

    def request_stop(self) -> None:
        self._send(b"stop\n")

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._errors.join(EXIT_SECONDS)
        assert self._process.stdin
        with suppress(OSError):
            self._process.stdin.close()

    def death(self) -> str:
        code = self._process.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"its process {how}" + (f": {self._last_error}" if self._last_error else "")

    def _read_errors(self) -> None:
        assert self._process.stderr
        with self._process.stderr as lines:
            for line in lines:
                self._last_error = line.decode(errors="replace").strip() or self._last_error

    def _send(self, message: bytes) -> None:
        assert self._process.stdin
        with suppress(OSError):  # it has ended
            self._process.stdin.write(message)
            self._process.stdin.flush()


def _forward(events: int, put_event: Callable[[dict[str, Any]], None]) -> None:
    for event in read_events(events):
        put_event(event)
    put_event({})  # wakes the executor


class RayExecutor(Executor):
    """Executes trainings as Ray tasks; a training whose node dies starts again.

    A training gives the same results wherever and however often it starts.
    """

    def __init__(self, train: TrainFunction, listener: Listener, jobs: int | None = None) -> None:
        """Use the connected cluster, or start a local one with room for `jobs`."""
        super().__init__(train, listener, jobs)
        with _optional.require("backend ray", "ray", "ray"):
            from cagepool.train import ray  # noqa: PLC0415 - takes seconds

        self._ray = ray
        self._stack = ExitStack()
        self._stack.enter_context(ray.cluster_connection(None, self.jobs))
        self._tasks: dict[Training, Any] = {}  # Ray's references have no types
        self._inputs: dict[Training, Files | TrainingError] = {}

    def submit(self, training: Training) -> None:
        """Submit a training."""
        try:
            self._inputs[training] = _input_files(training.open_or_create())
        except ValueError as error:
            self._inputs[training] = self._failure(training, str(error))
            return
        self._start_task(training)
        self._listener.on_start(training)

    def wait(self, training: Training, should_stop: ShouldStop) -> int | None:
        """Wait for a training; one that is stopped starts again when it is resumed."""
        if isinstance(error := self._inputs[training], TrainingError):
            raise error
        for restarts in range(MAX_ATTEMPTS):
            while not self._ray.is_done(self._tasks[training], POLL_SECONDS):
                if should_stop():
                    return None
            try:
                files = self._ray.result(self._tasks[training])
            except self._ray.NodeLostError as error:
                last_error = str(error)
                self._start_task(training)
            except Exception as error:
                raise self._failure(training, one_line(error)) from error
            else:
                del self._tasks[training], self._inputs[training]
                _replace_files(training.path, files)
                self._listener.on_end(training)
                return restarts
        message = f"{MAX_ATTEMPTS} nodes died one after another: {last_error}"
        raise self._failure(training, message)

    def close(self) -> None:
        """Cancel all tasks."""
        for task in self._tasks.values():
            self._ray.cancel(task)
        self._stack.close()

    def _start_task(self, training: Training) -> None:
        arguments = (training.path.name, self._inputs[training], self._train)
        self._tasks[training] = self._ray.start_task(_train_copy, *arguments)


def _train_copy(name: str, inputs: Files, train: TrainFunction) -> Files:
    """Train the run of this name in a temporary folder; returns the files of its run folder."""
    with TemporaryDirectory() as folder:
        _write_files(Path(folder), inputs)
        run = runs.open_run(Path(folder) / name)
        train(run, NullCallback(), lambda: False)
        return _read_files(run.path, run.path)


def _input_files(run: runs.Run) -> Files:
    """Settings of a run and, with `start_from`, settings and last checkpoint of that run."""
    files = {f"{run.path.name}/{runs.CONFIG}": _read_config(run.path)}
    start_from = run.settings["run"]["start_from"]
    if start_from is None:
        return files
    parent = runs.open_run(run.path / start_from)
    checkpoint = parent.checkpoint("last").path
    parent_path = parent.path.resolve()
    files |= _read_files(run.path.parent.resolve(), checkpoint.resolve())
    return files | {f"{parent_path.name}/{runs.CONFIG}": _read_config(parent_path)}


def _read_config(folder: Path) -> bytes:
    return runs.read_bytes(folder / runs.CONFIG, runs.MAX_JSON_BYTES)


def _read_files(base: Path, folder: Path) -> Files:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(base)): runs.read_bytes(path, runs.MAX_WEIGHTS_BYTES) for path in paths
    }


def _write_files(base: Path, files: Files) -> None:
    for name, content in files.items():
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _replace_files(folder: Path, files: Files) -> None:
    """Replace the files of a run folder, except its config.json, which is never missing."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != runs.CONFIG:
            path.unlink()
    _write_files(folder, {name: data for name, data in files.items() if name != runs.CONFIG})

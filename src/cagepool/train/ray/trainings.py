"""Executor of whole trainings as Ray tasks; run folders are copied to the nodes and back."""

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self, TypeAlias

import ray
from ray.exceptions import RayError, RayTaskError

from cagepool import runs
from cagepool.train import runner
from cagepool.train.evaluation import Check
from cagepool.train.logging import Row
from cagepool.train.ray.connection import connected

ASKING_SECONDS = 0.5  # between two questions whether to stop
TRIES = 10  # nodes that may die over one training

Files: TypeAlias = dict[str, bytes]  # by their paths


class RayExecutor:
    """Trains runs in tasks of Ray; one whose node dies is begun anew.

    A training is the same wherever and however often it is begun, so that nothing but time is lost.
    """

    def __init__(self, at_once: int) -> None:
        """Use the cluster that is connected, or one of its own."""
        self._stack = ExitStack()
        self._stack.enter_context(connected(None, at_once))
        self._tasks: dict[Path, Any] = {}  # what Ray gives has no types
        self._given: dict[Path, Files] = {}

    def submit(self, run: runs.Run) -> None:
        """Start the training of a run, unless it has been started."""
        if run.path not in self._tasks:
            self._given[run.path] = _needed(run)
            self._start_task(run.path)

    def wait(self, run: runs.Run, should_stop: Callable[[], bool]) -> int | None:
        """Wait for a training; returns the number of restarts, or none if it was stopped."""
        for repeated in range(TRIES):
            task = self._tasks[run.path]
            while not ray.wait([task], timeout=ASKING_SECONDS)[0]:
                if should_stop():
                    return None
            try:
                _fill(run.path, ray.get(task))
            except RayTaskError as error:
                raise error.cause from error
            except RayError as error:
                lost = error
                self._start_task(run.path)
            else:
                del self._tasks[run.path], self._given[run.path]
                return repeated
        raise ConnectionError(f"{TRIES} nodes have died one after the other: {lost}") from lost

    def close(self) -> None:
        """Stop what is under way."""
        for task in self._tasks.values():
            ray.cancel(task, force=True)
        self._tasks.clear()
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start_task(self, path: Path) -> None:
        task: Any = ray.remote(_trained).options(max_retries=0, scheduling_strategy="SPREAD")
        self._tasks[path] = task.remote(path.name, self._given[path])


class _Silent:
    """Nobody watches a training on another node."""

    def updated(self, row: Row, /) -> None:
        """Say nothing."""

    def checked(self, row: Row, check: Check, /, *, is_best: bool) -> None:
        """Say nothing."""


def _trained(name: str, given: Files) -> Files:
    """Train the run of this name, in a task: what it needs in, what it leaves out."""
    with TemporaryDirectory() as folder:
        _write(Path(folder), given)
        run = runs.open_run(Path(folder) / name)
        runner.train(run, _Silent(), lambda: False)
        return _read(run.path, run.path)


def _needed(run: runs.Run) -> Files:
    """The settings of a run, and the last policy of the one from which it starts."""
    found = {f"{run.path.name}/{runs.CONFIG}": (run.path / runs.CONFIG).read_bytes()}
    start_from = run.settings["run"]["start_from"]
    if start_from is None:
        return found
    parent = runs.open_run(run.path / start_from)
    checkpoint = parent.checkpoint("last").path
    beside = run.path.parent.resolve()
    origin = parent.path.resolve()
    found |= _read(beside, checkpoint.resolve())
    return found | {f"{origin.name}/{runs.CONFIG}": (origin / runs.CONFIG).read_bytes()}


def _read(base: Path, folder: Path) -> Files:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(base)): path.read_bytes() for path in paths}


def _write(base: Path, files: Files) -> None:
    for name, content in files.items():
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _fill(folder: Path, files: Files) -> None:
    """Put a finished training into its folder, of which the settings are never away."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != runs.CONFIG:
            path.unlink()
    _write(folder, {name: content for name, content in files.items() if name != runs.CONFIG})

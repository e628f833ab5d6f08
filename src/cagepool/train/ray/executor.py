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
from cagepool.train.ray import cluster_connection

POLL_SECONDS = 0.5  # between two calls of `should_stop`
MAX_ATTEMPTS = 10  # per training

Files: TypeAlias = dict[str, bytes]  # contents by relative path


class RayExecutor:
    """Trains runs in Ray tasks; a training whose node dies starts again. A context manager.

    A training gives the same results wherever and however often it starts.
    """

    def __init__(self, max_tasks: int, train: Callable[[runs.Run], object] = runner.train) -> None:
        """Use the connected cluster, or start a local one.

        Args:
            max_tasks: Trainings at a time in a local cluster.
            train: Trains a run in its folder, to the end.
        """
        self._train = train
        self._stack = ExitStack()
        self._stack.enter_context(cluster_connection(None, max_tasks))
        self._tasks: dict[Path, Any] = {}  # Ray's references have no types
        self._inputs: dict[Path, Files] = {}

    def submit(self, run: runs.Run) -> None:
        """Submit the training of a run, unless it is submitted already."""
        if run.path not in self._tasks:
            self._inputs[run.path] = _input_files(run)
            self._start_task(run.path)

    def wait(self, run: runs.Run, should_stop: Callable[[], bool]) -> int | None:
        """Wait for a training; returns its number of restarts, or none if `should_stop` is true."""
        for restarts in range(MAX_ATTEMPTS):
            task = self._tasks[run.path]
            while not ray.wait([task], timeout=POLL_SECONDS)[0]:
                if should_stop():
                    return None
            try:
                _replace_files(run.path, ray.get(task))
            except RayTaskError as error:
                raise error.cause from error
            except RayError as error:
                last_error = error
                self._start_task(run.path)
            else:
                del self._tasks[run.path], self._inputs[run.path]
                return restarts
        raise ConnectionError(
            f"{MAX_ATTEMPTS} nodes died one after another: {last_error}"
        ) from last_error

    def close(self) -> None:
        """Cancel the running tasks."""
        for task in self._tasks.values():
            ray.cancel(task, force=True)
        self._tasks.clear()
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start_task(self, path: Path) -> None:
        task: Any = ray.remote(_run_task).options(max_retries=0, scheduling_strategy="SPREAD")
        self._tasks[path] = task.remote(path.name, self._inputs[path], self._train)


def _run_task(name: str, inputs: Files, train: Callable[[runs.Run], object]) -> Files:
    """Train the run of this name in a temporary folder; returns the files of its run folder."""
    with TemporaryDirectory() as folder:
        _write_files(Path(folder), inputs)
        run = runs.open_run(Path(folder) / name)
        train(run)
        return _read_files(run.path, run.path)


def _input_files(run: runs.Run) -> Files:
    """Settings of a run and, with `start_from`, settings and last checkpoint of that run."""
    files = {
        f"{run.path.name}/{runs.CONFIG}": runs.read_bytes(
            run.path / runs.CONFIG, runs.MAX_JSON_BYTES
        )
    }
    start_from = run.settings["run"]["start_from"]
    if start_from is None:
        return files
    parent = runs.open_run(run.path / start_from)
    checkpoint = parent.checkpoint("last").path
    parent_path = parent.path.resolve()
    files |= _read_files(run.path.parent.resolve(), checkpoint.resolve())
    config = runs.read_bytes(parent_path / runs.CONFIG, runs.MAX_JSON_BYTES)
    return files | {f"{parent_path.name}/{runs.CONFIG}": config}


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
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != runs.CONFIG:
            path.unlink()
    _write_files(folder, {name: data for name, data in files.items() if name != runs.CONFIG})

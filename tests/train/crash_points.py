"""Script that ends a short training at its file operations, resumes it and compares the results.

A file operation is an open for writing, a write, a flush to disk, a rename, a link, or the creation
or removal of a file or folder, inside the run folder. The process ends just before the operation,
or, if it is a write, after half of it. All processes are forked before any thread exists.
"""

import io
import json
import os
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import torch

from cagepool import runs
from cagepool.train import runner
from cagepool.train.config import TrainConfig
from tests.train.null_listener import NullListener, never
from tests.train.run_results import run_results
from tests.train.short_runs import SHORT

CRASHED = 137  # as after SIGKILL
CONFIG = SHORT.with_settings(total_episodes=30, n_evals=2)
EVENTS = {"os.rename", "os.link", "os.mkdir", "os.remove", "os.rmdir", "os.truncate"}


class CrashAt:
    """Ends this process at the n-th file operation below a folder."""

    def __init__(self, folder: Path, number: int) -> None:
        self.count = 0
        self._folder = str(folder.absolute())
        self._number = number
        self._fsync, self._open = os.fsync, io.open
        sys.addaudithook(self._on_event)
        os.fsync = self._crash_before_fsync  # type: ignore[assignment]
        io.open = self._open_and_watch  # type: ignore[assignment]

    def operate(self, crash: Callable[[], object] = lambda: None) -> None:
        """Count an operation; the process ends after `crash` if it is the n-th."""
        self.count += 1
        if self.count == self._number:
            crash()
            os._exit(CRASHED)

    def _on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in EVENTS or not isinstance(arguments[0], str | os.PathLike):
            return
        descriptor = arguments[1] if event in ("os.remove", "os.rmdir") else -1
        folder = Path(f"/proc/self/fd/{descriptor}").readlink() if descriptor > 0 else Path()
        if self._is_inside(folder / arguments[0]):
            self.operate()

    def _crash_before_fsync(self, descriptor: int) -> None:
        self.operate()
        self._fsync(descriptor)

    def _open_and_watch(self, path: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
        if not self._is_inside(path) or "r" in mode:
            return self._open(path, mode, *arguments, **named)
        self.operate()
        return _HalfWriter(self._open(path, mode, *arguments, **named), self)

    def _is_inside(self, path: Any) -> bool:
        is_path = isinstance(path, str | os.PathLike)
        return is_path and str(Path(path).absolute()).startswith(self._folder)


class _HalfWriter:
    """A file whose writes are file operations."""

    def __init__(self, file: Any, crash: CrashAt) -> None:
        self._file, self._crash = file, crash

    def write(self, content: Any) -> Any:
        self._crash.operate(
            lambda: (self._file.write(content[: len(content) // 2]), self._file.flush())
        )
        return self._file.write(content)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def train(path: Path, config: TrainConfig) -> None:
    """Train a run to its end: a new one where no run was created, else resumed."""
    is_new = not runs.is_run(path)
    run = runs.create(path, config.as_dict(), "0.1.0") if is_new else runs.open_run(path)
    assert runner.train(run, NullListener(), never)


def train_in_fork(path: Path, config: TrainConfig, crash_at: int) -> int | None:
    """Number of file operations; none if the process ended at operation `crash_at`."""
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        try:
            crash = CrashAt(path, crash_at)
            train(path, config)
            os.write(write_end, str(crash.count).encode())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        count = pipe.read()
    _, status = os.wait()
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, CRASHED), f"the training at operation {crash_at} ended with {code}"
    return int(count) if code == 0 else None


def files_of(path: Path) -> list[str]:
    """Names of all files but TensorBoard's, of which every process writes one."""
    paths = (str(file.relative_to(path)) for file in path.rglob("*"))
    return sorted(name for name in paths if not name.startswith("events."))


def crash_and_resume(path: Path, config: TrainConfig, crash_points: list[int]) -> int:
    """End a run at one operation per process, then train it to its end; returns the kills."""
    shutil.rmtree(path, ignore_errors=True)
    kills = sum(train_in_fork(path, config, point) is None for point in crash_points)
    train_in_fork(path, config, 0)
    return kills


def main(folder: str, overlap: str, share: str, extra: str) -> None:
    """Kill at a share of all operations, then at random pairs; prints counts and differences."""
    torch.optim.Adam([torch.zeros(1)])  # imports as much as PyTorch itself
    config = CONFIG.with_settings(overlap=overlap == "async")
    whole, killed = Path(folder, "whole"), Path(folder, "killed")
    total = train_in_fork(whole, config, 0)
    assert total is not None
    expected = (run_results(whole), files_of(whole))
    draw = random.Random(0)
    points = [[number] for number in range(1, total + 1)]
    sample = points if share == "1" else draw.sample(points, round(total * float(share)))
    sample += [[draw.randint(1, total), draw.randint(1, total)] for _ in range(int(extra))]
    kills, differences, leftovers = 0, [], []
    for crash_points in sample:
        kills += crash_and_resume(killed, config, crash_points)
        results, names = run_results(killed), files_of(killed)
        if results != expected[0]:
            differences.append(crash_points)
        if names != expected[1]:
            leftovers.append(crash_points)
    found = {"differences": differences, "leftovers": leftovers}
    print(json.dumps({"operations": total, "kills": kills, **found}))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])

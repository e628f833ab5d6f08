"""Process of one training: reads its task from standard input, writes events to a pipe.

The task is a pickle of a function and a run folder, after its length. A further line asks the
training to stop after its update. The process ends at once when standard input closes: its parent
is gone.
"""

import os
import pickle
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeAlias

from cagepool import runs
from cagepool.experiments.listener import EventWriter
from cagepool.train.tracking import Callback

TrainFunction: TypeAlias = Callable[[runs.Run, Callback, Callable[[], bool]], bool]
"""Trains a run until it ends or is asked to stop; returns whether it has ended."""

LENGTH_BYTES = 8
LOCK_SECONDS = 10.0  # for which a process of the same run, whose parent was killed, may go on
ERROR = "error.txt"


def encode_task(train: TrainFunction, path: Path) -> bytes:
    """The task as a worker reads it."""
    task = pickle.dumps((train, path))
    return len(task).to_bytes(LENGTH_BYTES) + task


def main(descriptor: int) -> int:
    """Train; returns the exit code."""
    os.set_inheritable(descriptor, False)  # noqa: FBT003 - positional only
    events, control = EventWriter(descriptor), _take_standard_input()
    run: runs.Run | None = None
    try:
        train, path = _read_task(control)
        stop = threading.Event()
        threading.Thread(target=_watch_parent, args=(control, stop), daemon=True).start()
        run = runs.open_run(path)
        _wait_until_unlocked(run)
        is_finished = train(run, events, stop.is_set)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - of code of the user
        if run is not None:
            runs.replace_file(run.path / ERROR, traceback.format_exc().encode())
        events.write(error=one_line(error))
        return 1
    (run.path / ERROR).unlink(missing_ok=True)
    events.write(finished=is_finished)
    return 0


def one_line(error: BaseException) -> str:
    """An error as one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def _take_standard_input() -> IO[bytes]:
    """Standard input, which is empty from now on for code of the user."""
    control = os.fdopen(os.dup(0), "rb")
    with os.fdopen(os.open(os.devnull, os.O_RDONLY)) as empty:
        os.dup2(empty.fileno(), 0)
    return control


def _read_task(control: IO[bytes]) -> tuple[TrainFunction, Path]:
    length = int.from_bytes(control.read(LENGTH_BYTES))
    train, path = pickle.loads(control.read(length))
    return train, path


def _watch_parent(control: IO[bytes], stop: threading.Event) -> None:
    if control.readline():
        stop.set()
        control.readline()
    os._exit(1)


def _wait_until_unlocked(run: runs.Run) -> None:
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            with run.lock():
                return
        except ValueError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)

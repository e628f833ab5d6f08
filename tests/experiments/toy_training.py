"""Trainings of executors that take no time, one per behavior."""

import os
import sys
import time
from collections.abc import Callable

from cagepool import runs
from cagepool.train.tracking import Callback

ShouldStop = Callable[[], bool]


def finish(_run: runs.Run, callback: Callback, _should_stop: ShouldStop) -> bool:
    callback.on_update({"episodes": 7.0, "return_mean": float("nan")})
    return True


def print_and_read(_run: runs.Run, _callback: Callback, _should_stop: ShouldStop) -> bool:
    """Uses standard output and input as a user's code may."""
    sys.stdout.write('{"finished": false}\n')
    os.write(1, b"{}\n[]\n")
    return sys.stdin.read() == ""


def raise_error(_run: runs.Run, _callback: Callback, _should_stop: ShouldStop) -> bool:
    raise KeyError("no\nreward")


def write_garbage(_run: runs.Run, callback: Callback, _should_stop: ShouldStop) -> bool:
    descriptor = callback._file.fileno()  # type: ignore[attr-defined]
    os.write(descriptor, b'\xff\n7\n{"a":\n{"unknown": 1}\n' + b"[" * 100_000 + b"\n")
    return True


def exit_at_once(_run: runs.Run, _callback: Callback, _should_stop: ShouldStop) -> bool:
    sys.stderr.write("gone\n")
    sys.stderr.flush()
    os._exit(0)


def die_beside_a_child(_run: runs.Run, _callback: Callback, _should_stop: ShouldStop) -> bool:
    """Leaves a forked child that keeps all pipes open."""
    if os.fork() == 0:
        time.sleep(30)
    os._exit(3)


def wait_for_stop(run: runs.Run, _callback: Callback, should_stop: ShouldStop) -> bool:
    while not should_stop():
        time.sleep(0.01)
    runs.replace_file(run.path / "stopped", b"")
    return False

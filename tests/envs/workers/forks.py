"""Forked children of the test process, which stay alive and hold copies of its descriptors."""

import ctypes
import os
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def fork_in_python() -> int:
    """Fork as multiprocessing does; hooks of `os.register_at_fork` run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, from Python 3.12 on
        return os.fork()


def fork_in_c() -> int:
    """Fork as a library in C may do: no hooks run, so the child keeps all descriptors."""
    return int(ctypes.PyDLL(None).fork())


FORKS: dict[str, Callable[[], int]] = {"os.fork": fork_in_python, "fork in C": fork_in_c}


def fork_sleeper(how: str) -> int:
    """Fork a child that lives as long as this process; returns when its hooks have run."""
    parent = os.getpid()
    reader, writer = os.pipe()
    child = FORKS[how]()
    if child == 0:
        os.write(writer, b"1")
        while os.getppid() == parent:
            time.sleep(0.1)
        os._exit(0)
    os.read(reader, 1)
    os.close(reader)
    os.close(writer)
    return child


@contextmanager
def forked_child(how: str) -> Iterator[int]:
    """Fork a child that lives until the end of the block; gives its process id."""
    child = fork_sleeper(how)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

"""Kills `cagepool train --resume RUN` again and again, in the midst of its work.

Run as a process of its own: it loads PyTorch once, and forks before PyTorch has made threads.
"""

import os
import random
import signal
import sys
import time

from cagepool.cli.live import Display
from cagepool.cli.main import run
from cagepool.train.record import Row  # loads PyTorch before the forks


def main(kills: int, *paths: str) -> None:
    """Kill each run so many times; prints how often it was still at work."""
    killed = sum(is_killed(path) for path in paths for _ in range(kills))
    sys.stdout.write(str(killed))


def is_killed(path: str) -> bool:
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        go_on(path, theirs)
    os.close(theirs)
    for _ in range(random.randrange(1, 12)):
        os.read(ours, 1)  # an update is done, or it has ended
    time.sleep(random.uniform(0, 0.05))
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    os.close(ours)
    return os.WIFSIGNALED(status)


def go_on(path: str, told: int) -> None:
    def tell(_display: Display, _row: Row) -> None:
        os.write(told, b".")

    Display.updated = tell  # type: ignore[assignment, method-assign]
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os._exit(run(["train", "--resume", path]))


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])

"""Kills `cagepool train --resume RUN` again and again, in the midst of its work.

Run as a process of its own: it loads everything once, and forks before there are threads.
"""

import os
import random
import signal
import sys
import time

import torch

from cagepool.cli.display import TrainDisplay
from cagepool.cli.main import load_commands, run
from cagepool.train.logging import Row


def main(kills: int, *paths: str) -> None:
    """Kill each run so many times; prints how often it was still at work."""
    load_commands()  # before the forks
    torch.optim.Adam([torch.zeros(1)])  # loads as much as PyTorch itself
    killed = sum(is_killed(path) for path in paths for _ in range(kills))
    sys.stdout.write(str(killed))


def is_killed(path: str) -> bool:
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        go_on(path, theirs)
    os.close(theirs)
    for _ in range(random.randrange(1, 6)):
        os.read(ours, 1)  # an update is done, or it has ended
    time.sleep(random.uniform(0, 0.02))
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    os.close(ours)
    return os.WIFSIGNALED(status)


def go_on(path: str, told: int) -> None:
    def tell(_display: TrainDisplay, _row: Row) -> None:
        os.write(told, b".")

    TrainDisplay.updated = tell  # type: ignore[assignment, method-assign]
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os._exit(run(["train", "--resume", path]))


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])

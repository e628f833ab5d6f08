"""Script that resumes runs and kills them with SIGKILL during training, several times per run.

It imports everything once and forks per kill, before any thread exists.
"""

import os
import random
import signal
import sys
import time

import torch

from cagepool.cli.display import TrainDisplay
from cagepool.cli.main import load_commands, run
from cagepool.train.tracking import Row


def main(kills: int, *paths: str) -> None:
    """Kill each run that many times; prints the number of kills that hit a training."""
    load_commands()  # before the forks
    torch.optim.Adam([torch.zeros(1)])  # imports as much as PyTorch itself
    killed = sum(resume_and_kill(path) for path in paths for _ in range(kills))
    sys.stdout.write(str(killed))


def resume_and_kill(path: str) -> bool:
    """Kill a run shortly after one of its next updates; returns whether it was still training."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        resume(path, write_end)
    os.close(write_end)
    for _ in range(random.randrange(1, 6)):
        os.read(read_end, 1)  # returns after an update, or at the end of the process
    time.sleep(random.uniform(0, 0.02))
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    os.close(read_end)
    return os.WIFSIGNALED(status)


def resume(path: str, write_end: int) -> None:
    def signal_update(_display: TrainDisplay, _row: Row) -> None:
        os.write(write_end, b".")

    TrainDisplay.on_update = signal_update  # type: ignore[assignment, method-assign]
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os._exit(run(["train", "--resume", path]))


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])

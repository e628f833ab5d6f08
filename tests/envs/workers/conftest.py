"""A simulated clock, so that tests of hanging environments do not depend on load."""

from pathlib import Path

import pytest

from cagepool.envs.workers import pool, process
from tests.envs.workers.toy_envs import HANGS_VARIABLE

SECONDS_PER_LOOK = 10.0  # more than any time limit of a test


class HangClock:
    """Clock of the pools: it advances only while every busy worker hangs.

    A healthy worker has all the time that it needs on a busy machine, and one that hangs passes
    its time limit as soon as the pool looks.
    """

    def __init__(self, hangs: Path) -> None:
        """Hung workers put files with their process ids into the folder."""
        self.hangs = hangs
        self.now_s = 0.0

    def __call__(self) -> float:
        try:
            open_pools = [one for one in list(pool._POOLS) if not one.closed]
        except RuntimeError:  # another thread opens a pool
            return self.now_s
        busy = [worker for one in open_pools for worker in one.workers if not worker.is_idle]
        if busy and all((self.hangs / str(worker.process.pid)).exists() for worker in busy):
            self.now_s += SECONDS_PER_LOOK
        return self.now_s


@pytest.fixture
def hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder with a file per hung worker, named by its process id."""
    folder = tmp_path / "hangs"
    folder.mkdir()
    monkeypatch.setenv(HANGS_VARIABLE, str(folder))
    return folder


@pytest.fixture
def hang_clock(hangs: Path, monkeypatch: pytest.MonkeyPatch) -> HangClock:
    """Replace the clock of all pools."""
    clock = HangClock(hangs)
    monkeypatch.setattr(pool, "monotonic", clock)
    monkeypatch.setattr(process, "monotonic", clock)
    return clock

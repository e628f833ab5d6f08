"""The cores that a process may use: affinity and the quota of a container."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cagepool import _machine
from cagepool._machine import usable_cores
from cagepool.experiments.executor import ProcessExecutor
from cagepool.experiments.listener import Listener
from cagepool.sim.batch import GAMES_PER_THREAD, Batch
from cagepool.train import runner
from cagepool.train.config import PpoConfig
from cagepool.train.native_learner import _threads

THREADS = Path("/proc/self/task")
WriteFiles = Callable[[dict[str, str]], None]


@pytest.fixture
def write_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteFiles:
    """Write files of control groups; the process may run on 8 cores."""

    def write(files: dict[str, str]) -> None:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="ascii")

    monkeypatch.setattr(_machine, "_CGROUP", tmp_path)
    monkeypatch.setattr(_machine, "_PROCESS_GROUPS", tmp_path / "self")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {*range(8)}, raising=False)
    return write


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 8),
        ({"cpu.max": "max 100000\n"}, 8),
        ({"cpu.max": "350000 100000\n"}, 3),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "1600000 100000\n"}, 8),
        ({"self": "0::/a/b c\n", "a/cpu.max": "200000 100000\n", "a/b c/cpu.max": "max 1\n"}, 2),
        ({"self": "0::/of/the/host\n", "cpu.max": "200000 100000\n"}, 2),
        ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
        (
            {
                "self": "1:cpu,cpuacct:/box\n0::/\n",
                "cpu/box/cpu.cfs_quota_us": "150000\n",
                "cpu/box/cpu.cfs_period_us": "50000\n",
            },
            3,
        ),
    ],
    ids=[
        *("no quota", "unlimited", "fraction", "less than one", "more than the affinity"),
        *("of a parent", "path of the host", "version 1", "version 1 unlimited"),
        "version 1 nested",
    ],
)
def test_a_quota_limits_the_cores(
    write_files: WriteFiles, files: dict[str, str], cores: int
) -> None:
    write_files(files)
    assert usable_cores() == cores


def test_a_process_uses_the_cores_of_its_affinity_only(
    write_files: WriteFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files({"cpu.max": "300000 100000"})
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {5, 7})
    assert usable_cores() == 2


@pytest.mark.skipif(not THREADS.exists(), reason="needs Linux's list of threads")
def test_a_batch_starts_no_more_threads_than_the_quota_has_cores(write_files: WriteFiles) -> None:
    write_files({"cpu.max": "300000 100000"})
    before = len([*THREADS.iterdir()])
    batch = Batch(8 * GAMES_PER_THREAD)
    assert len([*THREADS.iterdir()]) - before == 2  # and the caller's
    del batch


def test_a_training_and_a_study_use_no_more_than_the_quota(write_files: WriteFiles) -> None:
    write_files({"cpu.max": "200000 100000"})
    assert _threads(PpoConfig(threads=8)) == 2
    assert ProcessExecutor(runner.train, Listener()).jobs == 2

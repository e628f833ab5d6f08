"""Machine description, and load of the machine by other processes during a measurement."""

import os
import platform
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import NamedTuple, Self

import psutil

from cagepool import _core
from cagepool._machine import processor_model

LIBRARIES = (
    *("cagepool", "numpy", "gymnasium", "torch", "stable_baselines3", "sb3_contrib"),
    *("pufferlib", "ray", "torchrl", "pettingzoo", "CybORG"),
)


def describe_machine() -> dict[str, str | int | float | None]:
    """Return processor, versions, commit and load average."""
    return {
        "processor": processor_model(),
        "cores": os.cpu_count(),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "compiler": _core.COMPILER,
        **_versions(),
        "commit": _commit(),
        "load": load_average(),
    }


def load_average() -> float:
    """Mean number of runnable processes during the last minute."""
    return round(psutil.getloadavg()[0], 2)


class OtherLoad(NamedTuple):
    """Shares of the time of all cores, 0 to 1."""

    busy_elsewhere: float
    """Used by processes that are not descendants of this one, and by other tenants."""
    stolen: float
    """The part of `busy_elsewhere` that other tenants of the hardware used."""


class LoadMonitor:
    """Measures the load by others since its construction."""

    def __init__(self) -> None:
        """Begin."""
        self._before = _CpuSeconds.now()

    def other_load(self) -> OtherLoad | None:
        """Return the load since the beginning; None: no time has passed."""
        before, after = self._before, _CpuSeconds.now()
        total = after.total - before.total
        if total <= 0:
            return None
        others = (after.busy - before.busy) - (after.own - before.own)
        stolen = after.stolen - before.stolen
        return OtherLoad(round(max(0.0, others) / total, 3), round(stolen / total, 3))


class _CpuSeconds(NamedTuple):
    """Time of all cores since boot."""

    total: float
    busy: float
    stolen: float
    own: float

    @classmethod
    def now(cls) -> Self:
        times = psutil.cpu_times()
        # The kernel counts guest time as user time too.
        total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        idle = times.idle + getattr(times, "iowait", 0.0)
        own = cpu_seconds(process_tree(), ended_children=True)
        return cls(total, total - idle, getattr(times, "steal", 0.0), own)


def process_tree() -> list[psutil.Process]:
    """Return this process and its descendants."""
    own = psutil.Process()
    return [own, *own.children(recursive=True)]


def cpu_seconds(processes: Iterable[psutil.Process], *, ended_children: bool = False) -> float:
    """CPU time of processes that still exist.

    Args:
        processes: Counted with all their threads.
        ended_children: Add the time of children that have ended.
    """
    seconds = 0.0
    for process in processes:
        with suppress(psutil.Error):
            times = process.cpu_times()
            seconds += times.user + times.system
            if ended_children:
                seconds += times.children_user + times.children_system
    return seconds


def memory_bytes(processes: Iterable[psutil.Process]) -> int:
    """Memory of processes; a shared page counts once, divided among the processes that map it."""
    return sum(process.memory_full_info().pss for process in processes)


def _versions() -> dict[str, str]:
    """Versions of the installed libraries that benches use."""
    versions = {}
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def _commit() -> str | None:
    """Commit of the checkout that contains this module; a + marks local changes."""
    git = ["git", "-C", str(Path(__file__).parent)]
    command = [*git, "describe", "--always", "--dirty=+", "--abbrev=10", "--match="]
    try:
        described = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return described.stdout.strip()

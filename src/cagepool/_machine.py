"""The machine: processor, and the cores and memory that this process may use."""

import os
import platform
from contextlib import suppress
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")  # limits of a container, version 2


def processor_model() -> str:
    """Name of the processor's model."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def usable_cores() -> float:
    """Cores that this process may use, by its affinity and the quota of its container."""
    # macOS and Windows have no affinity of processes.
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = float(len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1)
    quota = _limit("cpu.max")
    if len(quota) == 2 and quota[0] != "max":
        cores = min(cores, int(quota[0]) / int(quota[1]))
    return cores


def usable_memory_bytes() -> int | None:
    """Memory of the machine or, if that is less, of the container; None: not known."""
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return None
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = _limit("memory.max")
    return min(total, int(limit[0])) if limit and limit[0] != "max" else total


def _limit(name: str) -> list[str]:
    """Words of a limit of the container; empty where there is none."""
    with suppress(OSError):
        return (_CGROUP / name).read_text().split()
    return []

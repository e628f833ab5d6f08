"""The machine: processor, and the cores and memory that this process may use."""

import os
import platform
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

_CGROUP = Path("/sys/fs/cgroup")  # limits of a container
_PROCESS_GROUPS = Path("/proc/self/cgroup")  # control groups of this process


def processor_model() -> str:
    """Name of the processor's model."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def usable_cores() -> int:
    """Cores that this process may use: at least 1, by its affinity and its container's quota."""
    # macOS and Windows have no affinity of processes.
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return max(1, int(min([cores, *_cpu_quotas()])))


def _cpu_quotas() -> Iterator[float]:
    """Quotas of the control groups that this process is in, in cores; both versions of cgroups."""
    for group in _control_groups(""):
        quota = _read_words(group / "cpu.max")  # "max 100000": none
        if len(quota) == 2 and quota[0] != "max":
            yield int(quota[0]) / int(quota[1])
    for group in _control_groups("cpu"):
        quota = _read_words(group / "cpu.cfs_quota_us")  # -1: none
        period = _read_words(group / "cpu.cfs_period_us")
        if quota and period and int(quota[0]) > 0:
            yield int(quota[0]) / int(period[0])


def _control_groups(controller: str) -> Iterator[Path]:
    """Folders of this process's control group and its parents; an empty controller: version 2.

    Inside of a container the path may be the host's: only the root is there, the container's.
    """
    root = _CGROUP / controller
    for line in _read(_PROCESS_GROUPS).splitlines():
        controllers, _, path = line.partition(":")[2].partition(":")
        if controller in controllers.split(","):
            group = PurePosixPath(path.lstrip("/"))
            yield from (root / parent for parent in (group, *group.parents) if parent.name)
    yield root


def usable_memory_bytes() -> int | None:
    """Memory of the machine or, if that is less, of the container; None: not known."""
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return None
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = _read_words(_CGROUP / "memory.max")
    return min(total, int(limit[0])) if limit and limit[0] != "max" else total


def _read_words(path: Path) -> list[str]:
    return _read(path).split()


def _read(path: Path) -> str:
    """Content of a file of the kernel; empty where there is none."""
    with suppress(OSError):
        return path.read_text()
    return ""

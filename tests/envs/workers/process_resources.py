"""Resources of this process, for tests of leaks."""

import gc
import os
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from tests.environment import LIMIT_S


@dataclass(frozen=True)
class Resources:
    """Child processes, open file descriptors and named shared memory."""

    children: frozenset[str]
    descriptors: frozenset[str]
    shared: frozenset[str]


def used_resources() -> Resources:
    """Resources of this process after a garbage collection."""
    gc.collect()
    threads = Path("/proc/self/task").iterdir()
    children = {pid for thread in threads for pid in (thread / "children").read_text().split()}
    descriptors = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            descriptors.add(f"{entry.name} {entry.readlink()}")
        except FileNotFoundError:  # the descriptor of the listing itself
            continue
    # Semaphores and Ray's memory belong to other programs: workers use neither.
    names = (path.name for path in Path("/dev/shm").iterdir())
    shared = frozenset(name for name in names if not name.startswith(("sem.", "plasma", "ray")))
    return Resources(frozenset(children), frozenset(descriptors), shared)


def is_alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def all_end(pids: list[int], limit_s: float = LIMIT_S) -> bool:
    """Whether all processes end within the limit."""
    deadline_s = monotonic() + limit_s
    while any(map(is_alive, pids)):
        if monotonic() > deadline_s:
            return False
        os.sched_yield()
    return True

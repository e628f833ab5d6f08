"""What processes take: memory and processor time, read from Linux's /proc."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from cagepool.bench.measure import Clock

PROC = Path("/proc")


def children(pid: int | None = None) -> set[int]:
    """Processes that this one, or another, has started."""
    try:
        threads = list((PROC / str(pid or os.getpid()) / "task").iterdir())
        return {int(child) for one in threads for child in (one / "children").read_text().split()}
    except OSError:  # it is gone
        return set()


def family() -> Iterator[int]:
    """This process, those it has started, those they have started, and so on."""
    waiting = [os.getpid()]
    while waiting:
        pid = waiting.pop()
        waiting.extend(children(pid))
        yield pid


def processor_seconds(pids: Iterable[int]) -> float:
    """Time on a core of all threads of these processes that still live."""
    return 1e-9 * sum(map(_thread_nanoseconds, pids))


def _thread_nanoseconds(pid: int) -> int:
    try:
        threads = list((PROC / str(pid) / "task").iterdir())
        return sum(int((one / "schedstat").read_text().split()[0]) for one in threads)
    except OSError:  # it is gone
        return 0


def memory_bytes(pids: Iterable[int], kind: str = "Pss") -> int:
    """Memory of these processes, as a line of smaps_rollup says.

    `Pss` divides what is shared among those who share it; `Rss` counts it for each of them, and
    `Pss_Shmem` is the part of `Pss` that is in shared blocks.
    """
    return sum(_kilobytes(pid, kind) for pid in pids) * 1024


def _kilobytes(pid: int, kind: str) -> int:
    rollup = (PROC / str(pid) / "smaps_rollup").read_text()
    (line,) = (line for line in rollup.splitlines() if line.startswith(f"{kind}:"))
    return int(line.split()[1])


class BothClocks:
    """A clock that also writes down the time on a core, children included, of each turn."""

    def __init__(self, clock: Clock) -> None:
        """Watch this one."""
        self._clock = clock
        self.processor_s: list[float] = []
        """Of one call, in each turn."""

    def __call__(self, calls: int, /) -> float:
        """Seconds that so many calls took."""
        pids = list(family())
        before_s = processor_seconds(pids)
        elapsed_s = self._clock(calls)
        self.processor_s.append((processor_seconds(pids) - before_s) / calls)
        return elapsed_s

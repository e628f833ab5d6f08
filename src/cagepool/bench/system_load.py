"""How busy others keep the machine while something is measured."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

PROC = Path("/proc")
IDLE, IOWAIT, STEAL, GUEST = 3, 4, 7, 8  # columns of /proc/stat, in ticks
PARENT, TIMES = (
    1,
    slice(11, 15),
)  # of /proc/PID/stat after the name: its time and its dead children's


@dataclass(frozen=True)
class Busy:
    """Shares of all cores' time, from 0 to 1."""

    busy_elsewhere: float
    """Taken by processes that we have not started, and by other tenants."""
    stolen: float
    """Of it, what other tenants of the hardware took."""


@dataclass(frozen=True)
class Ticks:
    """Time of all cores since some moment."""

    total: int
    busy: int
    stolen: int
    own: int
    """Of this process and those that it has started, directly or not."""

    @classmethod
    def now(cls) -> Self | None:
        """As the system has counted them; none: it is not one that does."""
        try:
            line = (PROC / "stat").read_text().splitlines()[0]
        except OSError:
            return None
        columns = [int(word) for word in line.split()[1:]][:GUEST]
        idle = columns[IDLE] + columns[IOWAIT]
        return cls(sum(columns), sum(columns) - idle, columns[STEAL], _own(os.getpid()))


class Watch:
    """Looks at the machine when it is made and when it is asked."""

    def __init__(self) -> None:
        """Begin."""
        self._before = Ticks.now()

    def busy(self) -> Busy | None:
        """What others took since the beginning; none: nobody can tell."""
        before, after = self._before, Ticks.now()
        if before is None or after is None or after.total == before.total:
            return None
        total = after.total - before.total
        others = (after.busy - before.busy) - (after.own - before.own)
        stolen = after.stolen - before.stolen
        return Busy(round(max(0, others) / total, 3), round(stolen / total, 3))


def _own(root: int) -> int:
    """Ticks of a process and of all its descendants, those that are gone included."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for folder in PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        parents[int(folder.name)] = int(fields[PARENT])
        ticks[int(folder.name)] = sum(map(int, fields[TIMES]))
    return sum(ticks[pid] for pid in ticks if _descends(pid, root, parents))


def _descends(pid: int, root: int, parents: dict[int, int]) -> bool:
    while pid not in (root, 0):
        pid = parents.get(pid, 0)
    return pid == root

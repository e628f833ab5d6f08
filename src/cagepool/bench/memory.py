"""How much memory games and workers take, and whether it grows while they play."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import numpy as np

from cagepool import _core
from cagepool.bench import machine
from cagepool.bench.result import Result
from cagepool.bench.subprocess_timer import PROBES


@dataclass(frozen=True, kw_only=True)
class MemoryConfig:
    """What to measure."""

    native: tuple[int, ...] = (1, 1000, 10_000, 100_000)
    """Numbers of native games."""
    single: tuple[int, ...] = (10, 100, 1000)
    """Numbers of environments with one game each, in a loop and on 2 workers."""
    workers: tuple[int, ...] = (1, 2, 4, 8)
    """Numbers of workers, for one environment each."""
    pipes: tuple[int, ...] = (1, 5, 20)
    """Numbers of environments in Gymnasium's pipes, each a process."""
    steps: int = 1_000_000
    """Steps in which memory may grow."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """Memory of this many environments in a process of their own, and in its children."""

    environments: int
    workers: int
    bytes: int
    """Of all processes; what several share is counted once."""
    resident_bytes: int
    """The same, but what several share is counted for each of them: RSS."""
    shared_bytes: int
    """In shared blocks."""
    processes: int
    grown_bytes: int
    """By how much the resident ones have grown at the end."""


@dataclass(frozen=True, kw_only=True)
class MemoryResult(Result):
    """Memory by number of environments, and by number of workers."""

    held: dict[str, list[Held]]
    steps: int

    def slope(self, row: str, of: str = "bytes") -> float:
        """Bytes of one environment more, by a straight line through what was measured."""
        points = self.held[row]
        counts = [one.environments for one in points]
        return float(np.polyfit(counts, [getattr(one, of) for one in points], 1)[0])

    @property
    def ratios(self) -> dict[str, float]:
        """The figures that claims are made of."""
        figures: dict[str, float] = {
            "bytes of a native game's state": _core.GAME_BYTES + _core.TRUE_STATE_BYTES,
            "bytes of one more native game": self.slope("native"),
            "bytes of one more environment in a loop": self.slope("sync"),
            "bytes of one more environment in workers": self.slope("workers, by environments"),
            "of these, in the shared block": self.slope("workers, by environments", "shared_bytes"),
            "bytes of one more worker": self.slope("workers, by workers"),
            "bytes of one more process of Gymnasium's pipes": self.slope("pipes"),
        }
        for row in ("native", "workers"):
            grown = self.held[f"growth, {row}"][0].grown_bytes
            figures[f"bytes grown in {self.steps:,} steps, {row}"] = grown
        return {name: round(value, 1) for name, value in figures.items()}

    def facts(self) -> dict[str, object]:
        """What else belongs into the JSON."""
        return {"memory": {row: [asdict(one) for one in held] for row, held in self.held.items()}}


def measure_memory(
    config: MemoryConfig, progress: Callable[[str, int, int], object]
) -> MemoryResult:
    """Measure row after row; `progress` is told the row and the processes done and in all."""
    before = machine.describe()
    plan = list(_plan(config))
    held: dict[str, list[Held]] = {}
    for done, (row, backend, environments, workers, steps) in enumerate(plan, 1):
        found = held_by(backend, environments, workers, steps)
        held.setdefault(row, []).append(found)
        progress(row, done, len(plan))
    return MemoryResult(
        machine=before, load_after=machine.load(), groups={}, held=held, steps=config.steps
    )


def _plan(config: MemoryConfig) -> Iterator[tuple[str, str, int, int, int]]:
    """Rows, and for each entry backend, environments, workers and further steps."""
    for games in config.native:
        yield "native", "native", games, 0, 0
    for count in config.single:
        yield "sync", "sync", count, 0, 0
        yield "workers, by environments", "workers", count, 2, 0
    for workers in config.workers:
        yield "workers, by workers", "workers", workers, workers, 0
    for count in config.pipes:
        yield "pipes", "pipes", count, 0, 0
    yield "growth, native", "native", 100, 0, config.steps
    yield "growth, workers", "workers", 100, 2, config.steps


def held_by(backend: str, environments: int, workers: int, steps: int) -> Held:
    """Memory of environments that are made in a fresh process, and stepped so often."""
    numbers = map(str, (environments, workers, steps))
    command = [sys.executable, "-W", "ignore", str(PROBES / "memory.py"), backend, *numbers]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    before, after = map(json.loads, run.stdout.splitlines())
    return Held(
        environments=environments,
        workers=workers,
        bytes=before["once"],
        resident_bytes=before["resident"],
        shared_bytes=before["shared"],
        processes=before["processes"],
        grown_bytes=after["resident"] - before["resident"],
    )

"""Memory of games and workers, and its growth while they are stepped."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.suites.subprocess_timer import SCRIPTS
from cagepool import _core
from cagepool.bench.measure import Figures, Progress


@dataclass(frozen=True, kw_only=True)
class MemoryConfig:
    """Settings of this bench."""

    native: tuple[int, ...] = (1, 1000, 10_000, 100_000)
    """Numbers of native games."""
    single: tuple[int, ...] = (10, 100, 1000)
    """Numbers of environments with one game each, in a loop and on 2 workers."""
    workers: tuple[int, ...] = (1, 2, 4, 8)
    """Numbers of workers, with one environment each."""
    pipes: tuple[int, ...] = (1, 5, 20)
    """Numbers of environments in Gymnasium's pipes, one process each."""
    steps: int = 1_000_000
    """Environment steps between the two measurements of the growth."""


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Memory of environments in a new process and its descendants."""

    environments: int
    workers: int
    bytes: int
    """PSS: shared pages count once."""
    resident_bytes: int
    """RSS: shared pages count for every process."""
    shared_bytes: int
    """In shared blocks."""
    processes: int
    grown_bytes: int
    """Growth of the resident bytes."""


def measure_memory(config: MemoryConfig, progress: Progress) -> Figures:
    """Measure series after series."""
    plan = list(_plan(config))
    series: dict[str, list[Memory]] = {}
    for finished, (name, backend, environments, workers, steps) in enumerate(plan, 1):
        series.setdefault(name, []).append(memory_of(backend, environments, workers, steps))
        progress(name, finished, len(plan))
    facts = {"memory": {name: [asdict(one) for one in rows] for name, rows in series.items()}}
    return Figures(ratios=memory_figures(series, config.steps), facts=facts)


def memory_of(backend: str, environments: int, workers: int, steps: int) -> Memory:
    """Measure environments in a new process, before and after `steps` environment steps."""
    script = str(SCRIPTS / "measure_memory.py")
    arguments = [backend, *map(str, (environments, workers, steps))]
    command = [sys.executable, "-W", "ignore", script, *arguments]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    before, after = map(json.loads, run.stdout.splitlines())
    growth = after["resident_bytes"] - before["resident_bytes"]
    return Memory(environments=environments, workers=workers, grown_bytes=growth, **before)


def memory_figures(series: Mapping[str, Sequence[Memory]], steps: int) -> dict[str, float]:
    """Bytes per additional environment or process, and growth."""
    by_environments = series["workers, by environments"]
    figures: dict[str, float] = {
        "bytes per native game, its state": _core.GAME_BYTES + _core.TRUE_STATE_BYTES,
        "bytes per native game": slope(series["native"]),
        "bytes per environment in a loop": slope(series["sync"]),
        "bytes per environment in workers": slope(by_environments),
        "bytes per environment in workers, shared block": slope(by_environments, "shared_bytes"),
        "bytes per worker": slope(series["workers, by workers"]),
        "bytes per process of Gymnasium's pipes": slope(series["pipes"]),
    }
    for backend in ("native", "workers"):
        grown = series[f"growth, {backend}"][0].grown_bytes
        figures[f"bytes of growth in {steps:,} steps, {backend}"] = grown
    return {name: round(value, 1) for name, value in figures.items()}


def slope(points: Sequence[Memory], attribute: str = "bytes") -> float:
    """Bytes per additional environment: linear fit."""
    counts = [one.environments for one in points]
    return float(np.polyfit(counts, [getattr(one, attribute) for one in points], 1)[0])


def _plan(config: MemoryConfig) -> Iterator[tuple[str, str, int, int, int]]:
    """Series, backend, environments, workers and steps of every measurement."""
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

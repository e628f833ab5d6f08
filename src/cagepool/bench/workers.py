"""How fast worker processes are, beside the vector environments of other libraries."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from itertools import product
from statistics import median

from cagepool.bench import machine
from cagepool.bench.contenders import Gymnasium, Ours, ray_actors, stable_baselines
from cagepool.bench.dummy_envs import Probe
from cagepool.bench.measure import Pace
from cagepool.bench.processes import children, memory_bytes
from cagepool.bench.result import Result
from cagepool.bench.turns import Make, compared
from cagepool.envs import WorkerVectorEnv
from cagepool.envs.env_fns import EnvFn

MOST_PROCESSES = 100  # of others that take one an environment, beside Gymnasium's usual ones


@dataclass(frozen=True, kw_only=True)
class WorkersConfig:
    """What to measure."""

    pace: Pace = field(default_factory=lambda: Pace(repetitions=5, seconds=0.5))
    sizes: tuple[int, ...] = (1, 20, 100, 200)
    """Numbers of environments that cost next to nothing."""
    workers: int = 2
    """Processes for these."""
    actors: int = 20
    """Environments for which Ray starts an actor each, at most: that takes a second or two."""


@dataclass(frozen=True, kw_only=True)
class WorkersResult(Result):
    """Worker processes beside the vector environments of other libraries."""

    start: dict[str, float]
    """Seconds to start, and memory, of the largest number of environments."""

    def rate(self, group: str, name: str) -> float:
        """Median steps a second."""
        (found,) = (one for one in self.groups[group] if one.name == name)
        return 1e9 / median(found.nanoseconds)

    @property
    def ratios(self) -> dict[str, float]:
        """The figures that claims are made of, each from one group."""
        return {name: round(value, 3) for name, value in _ratios(self)}

    def facts(self) -> dict[str, object]:
        """What else belongs into the JSON."""
        return {"start": self.start}


def measure_workers(
    config: WorkersConfig, progress: Callable[[str, int, int], object]
) -> WorkersResult:
    """Measure group after group.

    `progress` is told the group under way, the turns done in it and the turns in it.
    """
    before = machine.describe()
    groups = compared(_groups(config), config.pace, progress)
    return WorkersResult(
        machine=before,
        load_after=machine.load(),
        groups=groups,
        start=_start(max(config.sizes), config.workers),
    )


def _groups(config: WorkersConfig) -> Iterator[tuple[str, list[Make]]]:
    for size in config.sizes:
        yield f"overhead {size}", [*_ours(config, size), *_others([Probe] * size)]
    # Apart and last: the processes of a cluster never rest, which would disturb the others.
    for size in config.sizes if find_spec("ray") else ():
        if size <= config.actors:
            actors = partial(ray_actors, [Probe] * size)
            yield f"overhead {size}, beside Ray", [*_ours(config, size), actors]


def _ours(config: WorkersConfig, size: int) -> list[Make]:
    ours = partial(Ours, makers=[Probe] * size, workers=min(config.workers, size))
    return [ours(name="ours, barrier"), ours(name="ours, free", min_ready=max(1, size // 2))]


def _others(makers: list[EnvFn]) -> list[Make]:
    others: list[Make] = [
        Gymnasium(backend="sync", makers=makers),
        Gymnasium(backend="pipes", makers=makers),
    ]
    if len(makers) > MOST_PROCESSES:
        return others
    others.append(Gymnasium(backend="pipes only", makers=makers))
    if find_spec("stable_baselines3"):
        others.append(partial(stable_baselines, makers))
    return others


def _start(size: int, workers: int) -> dict[str, float]:
    """What it takes to have so many small environments."""
    before = children()
    began_s = time.perf_counter()
    with WorkerVectorEnv([Probe] * size, workers=workers) as envs:
        envs.reset(seed=0)
        elapsed_s = time.perf_counter() - began_s
        processes = len(children() - before)
        held = [memory_bytes([pid]) / 2**20 for pid in envs.worker_pids]
    return {
        "environments": size,
        "workers": len(held),
        "processes": processes,
        "seconds": round(elapsed_s, 3),
        "megabytes_per_worker": round(sum(held) / len(held), 1),
        "megabytes_per_environment": round(sum(held) / size, 3),
    }


def _ratios(result: WorkersResult) -> Iterator[tuple[str, float]]:
    for group in result.groups:
        others = [one.name for one in result.groups[group] if not one.name.startswith("ours")]
        for mode, other in product(("barrier", "free"), others):
            ours = result.rate(group, f"ours, {mode}")
            yield f"{group}: {mode} / {other}", ours / result.rate(group, other)

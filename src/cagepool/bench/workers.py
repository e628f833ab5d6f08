"""How fast worker processes are, beside the vector environments of other libraries."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from cagepool.bench import machine
from cagepool.bench.measure import Contender, Measurement, Pace, compare
from cagepool.bench.result import Result
from cagepool.bench.vectors import Gymnasium, Ours, pufferlib, stable_baselines
from cagepool.envs import WorkerVectorEnv
from cagepool.envs.makers import Maker
from cagepool.envs.probes import Probe, Waiting, Working

WAITING_S = 0.005  # mean, of environments that wait
WORKING_S = 200e-6  # of environments that compute
SLOWER = 5  # times, of one environment among many
MOST_PROCESSES = 100  # of others that take one an environment, beside Gymnasium's usual ones


@dataclass(frozen=True, kw_only=True)
class WorkersConfig:
    """What to measure."""

    pace: Pace = field(default_factory=lambda: Pace(repetitions=5, seconds=0.5))
    sizes: tuple[int, ...] = (1, 20, 100, 200)
    """Numbers of environments that cost next to nothing."""
    workers: int = 2
    """Processes for these."""
    waiting: int = 100
    """Environments that wait, each in a process of its own."""


@dataclass(frozen=True, kw_only=True)
class WorkersResult(Result):
    """Worker processes beside the vector environments of other libraries."""

    start: dict[str, float]
    """Seconds to start, and memory, of the largest number of environments."""
    waiting: int

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
        waiting=config.waiting,
    )


Make = Callable[[ExitStack], Contender]


def compared(
    groups: Iterator[tuple[str, list[Make]]],
    pace: Pace,
    progress: Callable[[str, int, int], object],
) -> dict[str, list[Measurement]]:
    """Measure group after group, each contender being there only as long as its group."""
    _preload()
    results: dict[str, list[Measurement]] = {}
    for name, contenders in groups:
        with ExitStack() as stack:
            members = [make(stack) for make in contenders]
            turns = pace.repetitions * len(members)
            steps = iter(range(1, turns + 1))
            results[name] = compare(
                members,
                pace,
                lambda name=name, steps=steps, turns=turns: progress(name, next(steps), turns),  # type: ignore[misc]
            )
    return results


def _preload() -> None:
    """Spare processes of other libraries the imports, which would take most of the time."""
    wanted = ("cagepool.envs.probes", "stable_baselines3.common.vec_env")
    there = [name for name in wanted if find_spec(name.partition(".")[0])]
    get_context("forkserver").set_forkserver_preload(there)


def _groups(config: WorkersConfig) -> Iterator[tuple[str, list[Make]]]:
    for size in config.sizes:
        ours = partial(Ours, makers=[Probe] * size, workers=min(config.workers, size))
        free = ours(name="ours, free", min_ready=max(1, size // 2))
        yield f"overhead {size}", [ours(name="ours, barrier"), free, *_others([Probe] * size)]
    count = config.waiting
    ours = partial(Ours, makers=[partial(Waiting, WAITING_S)] * count, workers=count)
    few = min(10, count)
    yield (
        "waiting",
        [
            ours(name="ours, free, min_ready 1", min_ready=1),
            ours(name=f"ours, free, min_ready {few}", min_ready=few),
            ours(name="ours, barrier"),
            Gymnasium(backend="pipes", makers=[partial(Waiting, WAITING_S)] * count),
        ],
    )
    alike: list[Maker] = [partial(Working, WORKING_S)] * 100
    one_slow: list[Maker] = [partial(Working, SLOWER * WORKING_S), *alike[1:]]
    ours = partial(Ours, workers=config.workers, min_ready=1)
    yield "one slow", [ours(name="alike", makers=alike), ours(name="one slow", makers=one_slow)]


def _others(makers: list[Maker]) -> list[Make]:
    others: list[Make] = [
        Gymnasium(backend="sync", makers=makers),
        Gymnasium(backend="pipes", makers=makers),
    ]
    if len(makers) > MOST_PROCESSES:
        return others
    others.append(Gymnasium(backend="pipes only", makers=makers))
    if find_spec("stable_baselines3"):
        others.append(partial(stable_baselines, makers))
    if find_spec("pufferlib"):
        others.append(partial(pufferlib, makers))
    return others


def _start(size: int, workers: int) -> dict[str, float]:
    """What it takes to have so many small environments."""
    before = _children()
    began_s = time.perf_counter()
    with WorkerVectorEnv([Probe] * size, workers=workers) as envs:
        envs.reset(seed=0)
        elapsed_s = time.perf_counter() - began_s
        processes = len(_children() - before)
        held = [_memory_mb(pid) for pid in envs.worker_pids]
    return {
        "environments": size,
        "workers": len(held),
        "processes": processes,
        "seconds": round(elapsed_s, 3),
        "megabytes_per_worker": round(sum(held) / len(held), 1),
        "megabytes_per_environment": round(sum(held) / size, 3),
    }


def _children() -> set[str]:
    """Processes that this one has started."""
    threads = Path("/proc/self/task").iterdir()
    return {pid for thread in threads for pid in (thread / "children").read_text().split()}


def _memory_mb(pid: int) -> float:
    """Memory of a process, what it shares with others divided among them."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    (line,) = (line for line in rollup.splitlines() if line.startswith("Pss:"))
    return int(line.split()[1]) / 1024


def _ratios(result: WorkersResult) -> Iterator[tuple[str, float]]:
    for group in result.groups:
        if not group.startswith("overhead"):
            continue
        others = [one.name for one in result.groups[group] if not one.name.startswith("ours")]
        for mode, other in product(("barrier", "free"), others):
            ours = result.rate(group, f"ours, {mode}")
            yield f"{group}: {mode} / {other}", ours / result.rate(group, other)
    ideal = result.waiting / WAITING_S
    for one in result.groups["waiting"]:
        yield f"waiting: {one.name}, of the ideal rate", result.rate("waiting", one.name) / ideal
    slow = result.rate("one slow", "one slow") / result.rate("one slow", "alike")
    yield "one slow environment among 100: rate kept", slow

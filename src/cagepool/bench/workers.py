"""How fast worker processes are, beside the vector environments of other libraries."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from cagepool.bench import machine
from cagepool.bench.measure import Clock, Contender, Measurement, Pace, Settings, compare, timed
from cagepool.envs import WorkerVectorEnv, make_vec
from cagepool.envs.makers import Maker
from cagepool.envs.probes import Probe, Waiting, Working, pipes_only

WAITING_S = 0.005  # mean, of environments that wait
WORKING_S = 200e-6  # of environments that compute
SLOWER = 5  # times, of one environment among many


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
class WorkersResult:
    """What was measured, group by group; the members of a group took turns."""

    machine: dict[str, object]
    load_after: float
    groups: dict[str, list[Measurement]]
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

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            "machine": self.machine,
            "load_after": self.load_after,
            "start": self.start,
            "groups": {name: [m.as_dict() for m in group] for name, group in self.groups.items()},
            "ratios": self.ratios,
        }


def measure_workers(
    config: WorkersConfig, progress: Callable[[str, int, int], object]
) -> WorkersResult:
    """Measure group after group.

    `progress` is told the group under way, the turns done in it and the turns in it.
    """
    before = machine.describe()
    groups: dict[str, list[Measurement]] = {}
    for name, contenders in _groups(config):
        with ExitStack() as stack:
            members = [make(stack) for make in contenders]
            turns = config.pace.repetitions * len(members)
            steps = iter(range(1, turns + 1))
            groups[name] = compare(
                members,
                config.pace,
                lambda name=name, steps=steps, turns=turns: progress(name, next(steps), turns),  # type: ignore[misc]
            )
    return WorkersResult(
        machine=before,
        load_after=machine.load(),
        groups=groups,
        start=_start(max(config.sizes), config.workers),
        waiting=config.waiting,
    )


Make = Callable[[ExitStack], Contender]


def _groups(config: WorkersConfig) -> Iterator[tuple[str, list[Make]]]:
    for size in config.sizes:
        workers = min(config.workers, size)
        makers: list[Maker] = [Probe] * size
        yield (
            f"overhead {size}",
            [
                partial(_barrier, "ours, barrier", makers, workers),
                partial(_free, "ours, free", makers, workers, max(1, size // 2)),
                *_others(makers),
            ],
        )
    waiting: list[Maker] = [partial(Waiting, WAITING_S)] * config.waiting
    yield (
        "waiting",
        [
            partial(_free, "ours, free, min_ready 1", waiting, len(waiting), 1),
            partial(
                _free, "ours, free, min_ready 10", waiting, len(waiting), min(10, len(waiting))
            ),
            partial(_barrier, "ours, barrier", waiting, len(waiting)),
            partial(_gymnasium, "pipes", waiting),
        ],
    )
    alike: list[Maker] = [partial(Working, WORKING_S)] * 100
    one_slow: list[Maker] = [partial(Working, SLOWER * WORKING_S), *alike[1:]]
    yield (
        "one slow",
        [
            partial(_free, "alike", alike, config.workers, 1),
            partial(_free, "one slow", one_slow, config.workers, 1),
        ],
    )


def _others(makers: list[Maker]) -> list[Make]:
    others: list[Make] = [partial(_gymnasium, "sync", makers), partial(_gymnasium, "pipes", makers)]
    if len(makers) <= 100:
        others.append(partial(_pipes_only, makers))
    if find_spec("stable_baselines3"):
        others.append(partial(_stable_baselines, makers))
    if find_spec("pufferlib"):
        others.append(partial(_pufferlib, makers))
    return others


def _contender(name: str, makers: list[Maker], clock: Clock, **settings: Any) -> Contender:
    shown: Settings = {"environments": len(makers), **settings}
    return Contender(name=name, settings=shown, steps=len(makers), clock=clock)


def _stepped(name: str, envs: Any, makers: list[Maker], stack: ExitStack) -> Contender:
    stack.callback(envs.close)
    envs.reset(seed=0)
    actions = np.zeros(len(makers), np.int64)
    return _contender(name, makers, timed(lambda: envs.step(actions)))


def _barrier(name: str, makers: list[Maker], workers: int, stack: ExitStack) -> Contender:
    return _stepped(name, WorkerVectorEnv(makers, workers=workers, timeout=None), makers, stack)


def _free(
    name: str, makers: list[Maker], workers: int, min_ready: int, stack: ExitStack
) -> Contender:
    envs = stack.enter_context(WorkerVectorEnv(makers, workers=workers, timeout=None))
    envs.reset(seed=0)
    actions = np.zeros(len(makers), np.int64)

    def clock(calls: int, /) -> float:
        """Seconds for so many steps of each environment on average."""
        wanted = calls * len(makers)
        envs.send(actions)
        began_s = time.perf_counter()
        while wanted > 0:
            ready = envs.recv(min_ready)
            wanted -= len(ready.ids)
            envs.send(actions[: len(ready.ids)], ready.ids)
        elapsed_s = time.perf_counter() - began_s
        envs.reset()
        return elapsed_s

    return _contender(name, makers, clock, min_ready=min_ready)


def _gymnasium(backend: Any, makers: list[Maker], stack: ExitStack) -> Contender:
    envs = make_vec(len(makers), env=makers, backend=backend)
    return _stepped(f"Gymnasium, {backend}", envs, makers, stack)


def _pipes_only(makers: list[Maker], stack: ExitStack) -> Contender:
    return _stepped("Gymnasium, pipes only", pipes_only(makers), makers, stack)


def _stable_baselines(makers: list[Maker], stack: ExitStack) -> Contender:
    library = import_module("stable_baselines3.common.vec_env")
    envs = library.SubprocVecEnv(makers, start_method="forkserver")
    stack.callback(envs.close)
    envs.reset()
    actions = np.zeros(len(makers), np.int64)
    return _contender("SB3, SubprocVecEnv", makers, timed(lambda: envs.step(actions)))


def _pufferlib(makers: list[Maker], stack: ExitStack) -> Contender:
    vector = import_module("pufferlib.vector")
    made = partial(import_module("pufferlib.emulation").GymnasiumPufferEnv, env_creator=Probe)
    workers = min(2, len(makers))
    envs = vector.make(
        made, backend=vector.Multiprocessing, num_envs=len(makers), num_workers=workers
    )
    stack.callback(envs.close)
    envs.async_reset(0)
    actions = np.zeros(len(makers), np.int64)

    def step() -> None:
        envs.recv()
        envs.send(actions)

    return _contender("PufferLib, Multiprocessing", makers, timed(step))


def _start(size: int, workers: int) -> dict[str, float]:
    """What it takes to have so many small environments."""
    began_s = time.perf_counter()
    with WorkerVectorEnv([Probe] * size, workers=workers) as envs:
        envs.reset(seed=0)
        elapsed_s = time.perf_counter() - began_s
        held = [_memory_mb(pid) for pid in envs.worker_pids]
    return {
        "environments": size,
        "workers": len(held),
        "seconds": round(elapsed_s, 3),
        "megabytes_per_worker": round(sum(held) / len(held), 1),
        "megabytes_per_environment": round(sum(held) / size, 3),
    }


def _memory_mb(pid: int) -> float:
    """Memory of a process, what it shares with others divided among them."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    (line,) = (line for line in rollup.splitlines() if line.startswith("Pss:"))
    return int(line.split()[1]) / 1024


def _ratios(result: WorkersResult) -> Iterator[tuple[str, float]]:
    for group in result.groups:
        if not group.startswith("overhead"):
            continue
        for mode in ("barrier", "free"):
            ours = result.rate(group, f"ours, {mode}")
            for peer in ("pipes", "sync"):
                theirs = result.rate(group, f"Gymnasium, {peer}")
                yield f"{group} environments: {mode} / Gymnasium {peer}", ours / theirs
    ideal = result.waiting / WAITING_S
    for one in result.groups["waiting"]:
        yield f"waiting: {one.name}, of the ideal rate", result.rate("waiting", one.name) / ideal
    slow = result.rate("one slow", "one slow") / result.rate("one slow", "alike")
    yield "one slow environment among 100: rate kept", slow

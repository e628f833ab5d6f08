"""Worker processes: overhead per step, and throughput with environments of unequal speed.

The overhead is measured with environments that cost almost nothing, and compared with that of
other libraries. The stragglers bench compares `step` (barrier) and `send`/`recv` (asynchronous)
with the throughput at which no environment waits for another, and with that of bare loops:
processes that step their own environment without any communication.
"""

import math
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from itertools import combinations, pairwise, product
from typing import Any, TypeAlias

import numpy as np
import psutil

from cagepool import _core
from cagepool._machine import usable_cores
from cagepool.bench import system_load
from cagepool.bench.measure import (
    BareLoops,
    ComputingEnv,
    Contender,
    DummyEnv,
    Figures,
    Gymnasium,
    MakeContender,
    Native,
    Pace,
    Progress,
    SharedWorkers,
    SleepingEnv,
    Timer,
    Workers,
    measure_groups,
    ray_actors,
    sb3_subproc,
)
from cagepool.bench.schema import Groups, rates, significant
from cagepool.envs import WorkerVectorEnv, auto_backend
from cagepool.envs.single import Cage2Env
from cagepool.envs.vector_args import EnvFn

BARRIER, ASYNCHRONOUS = "cagepool, barrier", "cagepool, asynchronous"
BARE = "bare loops"
MAX_PEER_PROCESSES = 100  # of libraries that start one process per environment

SLEEP_SECONDS = 0.005  # mean
COMPUTE_SECONDS = 200e-6
SLOWDOWN = 5  # of one environment
HEAVY_TAIL, ONE_SLOW, ONE_SLOW_COMPUTING = "heavy tail", "one slow", "one slow, computing"


@dataclass(frozen=True, kw_only=True)
class WorkersConfig:
    """Settings of the workers bench."""

    pace: Pace = field(default_factory=lambda: Pace(repetitions=5, seconds=0.5))
    sizes: tuple[int, ...] = (1, 20, 100, 200)
    """Numbers of environments."""
    workers: int = 2
    max_ray_actors: int = 20
    """Largest number of environments for which Ray actors are started (1 to 2 s each)."""


def measure_workers(config: WorkersConfig, progress: Progress) -> Figures:
    """Measure the overhead for each number of environments."""
    groups = measure_groups(_overhead_groups(config), config.pace, progress)
    start = _start_up(max(config.sizes), config.workers)
    return Figures(groups=groups, ratios=workers_ratios(groups), facts={"start": start})


def workers_ratios(groups: Groups) -> dict[str, float]:
    """Throughput of both modes of the workers, divided by that of each other library."""
    ratios = {}
    for group, measurements in groups.items():
        rate = rates(measurements)
        peers = [name for name in rate if name not in (BARRIER, ASYNCHRONOUS)]
        for mode, peer in product((BARRIER, ASYNCHRONOUS), peers):
            ratios[f"{group}: {mode} / {peer}"] = round(rate[mode] / rate[peer], 3)
    return ratios


def _overhead_groups(config: WorkersConfig) -> Iterator[tuple[str, list[MakeContender]]]:
    for size in config.sizes:
        yield f"overhead {size}", [*_worker_modes(config, size), *_peers([DummyEnv] * size)]
    # Ray's processes are never idle, so these groups come last.
    for size in config.sizes if find_spec("ray") else ():
        if size <= config.max_ray_actors:
            actors = partial(ray_actors, [DummyEnv] * size)
            yield f"overhead {size}, beside Ray", [*_worker_modes(config, size), actors]


def _worker_modes(config: WorkersConfig, size: int) -> list[MakeContender]:
    contender = partial(Workers, env_fns=[DummyEnv] * size, workers=min(config.workers, size))
    return [contender(name=BARRIER), contender(name=ASYNCHRONOUS, min_ready=max(1, size // 2))]


def _peers(env_fns: Sequence[EnvFn]) -> list[MakeContender]:
    peers: list[MakeContender] = [
        Gymnasium(backend="sync", env_fns=env_fns),
        Gymnasium(backend="pipes", env_fns=env_fns),
    ]
    if len(env_fns) > MAX_PEER_PROCESSES:
        return peers
    peers.append(Gymnasium(backend="pipes only", env_fns=env_fns))
    if find_spec("stable_baselines3"):
        peers.append(partial(sb3_subproc, env_fns))
    return peers


def _start_up(size: int, workers: int) -> dict[str, float]:
    """Time and memory to start dummy environments in workers."""
    before = set(psutil.Process().children())
    start = time.perf_counter()
    with WorkerVectorEnv([DummyEnv] * size, workers=workers) as envs:
        envs.reset(seed=0)
        elapsed = time.perf_counter() - start
        started = set(psutil.Process().children()) - before
        processes = [psutil.Process(pid) for pid in envs.worker_pids]
        megabytes = system_load.memory_bytes(processes) / 2**20
    return {
        "environments": size,
        "workers": len(processes),
        "processes": len(started),
        "seconds": round(elapsed, 3),
        "megabytes_per_worker": round(megabytes / len(processes), 1),
        "megabytes_per_environment": round(megabytes / size, 3),
    }


@dataclass(frozen=True, kw_only=True)
class StragglersConfig:
    """Settings of the stragglers bench."""

    pace: Pace = field(default_factory=lambda: Pace(repetitions=5, seconds=0.5))
    waiting_envs: int = 100
    """Environments that sleep, each in its own process."""
    computing_envs: int = 100
    """Environments that compute, on one worker per core."""


def measure_stragglers(config: StragglersConfig, progress: Progress) -> Figures:
    """Measure environments of unequal speed."""
    groups = measure_groups(_straggler_groups(config), config.pace, progress)
    ideal = ideal_rates(config)
    ratios = {}
    for group, measurements in groups.items():
        rate = rates(measurements)
        references = {"ideal": ideal[group], BARE: rate.get(BARE)}
        for name, (reference, reference_rate) in product(rate, references.items()):
            if reference_rate and name != reference:
                ratios[f"{group}: {name} / {reference}"] = round(rate[name] / reference_rate, 3)
    facts = {"ideal_steps_per_second": {group: round(rate) for group, rate in ideal.items()}}
    return Figures(groups=groups, ratios=ratios, facts=facts)


def ideal_rates(config: StragglersConfig) -> dict[str, float]:
    """Steps per second by group if no environment waits for another, without overhead."""
    waiting, computing = config.waiting_envs, config.computing_envs
    processes = min(usable_cores(), computing)
    # Computing environments take equally many steps, and no core is idle.
    compute_seconds = (computing - 1 + SLOWDOWN) * COMPUTE_SECONDS
    return {
        HEAVY_TAIL: waiting / SLEEP_SECONDS,
        ONE_SLOW: (waiting - 1 + 1 / SLOWDOWN) / SLEEP_SECONDS,
        ONE_SLOW_COMPUTING: processes * computing / compute_seconds,
    }


def _straggler_groups(config: StragglersConfig) -> Iterator[tuple[str, list[MakeContender]]]:
    sleeping: list[EnvFn] = [partial(SleepingEnv, SLEEP_SECONDS)] * config.waiting_envs
    yield HEAVY_TAIL, _modes(sleeping, config.waiting_envs)
    slow: EnvFn = partial(SleepingEnv, SLOWDOWN * SLEEP_SECONDS)
    yield ONE_SLOW, _modes([slow, *sleeping[1:]], config.waiting_envs)
    computing: list[EnvFn] = [partial(ComputingEnv, COMPUTE_SECONDS)] * config.computing_envs
    slow = partial(ComputingEnv, SLOWDOWN * COMPUTE_SECONDS)
    processes = min(usable_cores(), config.computing_envs)
    yield ONE_SLOW_COMPUTING, _modes([slow, *computing[1:]], processes)


def _modes(env_fns: Sequence[EnvFn], workers: int) -> list[MakeContender]:
    shared = SharedWorkers(env_fns, workers)  # starting 100 processes takes long
    contender = partial(Workers, env_fns=env_fns, workers=workers, shared=shared)
    tenth = max(2, len(env_fns) // 10)
    modes: list[MakeContender] = [
        contender(name=f"{ASYNCHRONOUS}, min_ready 1", min_ready=1),
        contender(name=f"{ASYNCHRONOUS}, min_ready {tenth}", min_ready=tenth),
        contender(name=BARRIER),
    ]
    if workers == len(env_fns):
        modes.append(BareLoops(name=BARE, shared=shared))
        modes.append(Gymnasium(backend="pipes", env_fns=env_fns))
    return modes


SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 1000)
KINDS: dict[str, EnvFn] = {
    "CAGE-2": Cage2Env,
    "cheap": DummyEnv,
    "costly": partial(ComputingEnv, COMPUTE_SECONDS),
}
BUSY = "busy:"  # beginning of the names of groups that are measured beside busy processes
_BUSY_PROGRAM = """
import os
parent = os.getppid()
while os.getppid() == parent:
    sum(range(100_000))
"""
Curve: TypeAlias = Mapping[int, float]
"""Steps per second by number of environments."""


@dataclass(frozen=True, kw_only=True)
class ScalingConfig:
    """Settings of this bench."""

    pace: Pace = field(default_factory=lambda: Pace(repetitions=5, seconds=0.1))
    sizes: tuple[int, ...] = SIZES
    """Numbers of environments; 1 must be among them."""
    max_pipes: int = 20
    """Largest number of environments for Gymnasium's pipes, which start one process each."""
    busy_sizes: tuple[int, ...] = (1, 2, 5, 20, 100, 1000)
    """Numbers of environments that are measured again beside busy processes."""
    busy_processes: int = 2
    busy_factor: int = 2
    """Repetitions beside busy processes, divided by those without: time slices are noise."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        if 1 not in self.sizes:
            raise ValueError(f"sizes must contain 1, got {self.sizes}")


def measure_scaling(config: ScalingConfig, progress: Progress) -> Figures:
    """Measure each backend at each number of environments."""
    sweep = _Sweep(config)
    pace = config.pace
    busy_pace = replace(pace, repetitions=config.busy_factor * pace.repetitions)
    groups = measure_groups(sweep.idle_groups(), pace, progress)
    with _run_busy_processes(config.busy_processes):
        groups |= measure_groups(sweep.busy_groups(), busy_pace, progress)
    facts = {
        "left_out": f"pipes above {config.max_pipes} environments: one process per environment; "
        "pipes beside busy processes",
        "busy_processes": config.busy_processes,
        "cost_model": _cost_model(curves(groups, "cheap")),
        "scaling": {kind: _scaling(kind, groups, sweep) for kind in KINDS},
    }
    return Figures(groups=groups, ratios=_auto_ratios(groups, sweep.auto), facts=facts)


@dataclass(frozen=True)
class Crossing:
    """Number of environments, interpolated, at which one backend overtakes another."""

    overtaken: str
    faster: str
    environments: float


@dataclass(frozen=True)
class Fastest:
    """Range of sizes with the same fastest backend, both ends included."""

    first: int
    last: int
    backend: str


def curves(groups: Groups, kind: str) -> dict[str, dict[int, float]]:
    """Steps per second of one kind of environment, by backend and number of environments."""
    found: dict[str, dict[int, float]] = {}
    for group, measurements in groups.items():
        if group.startswith(f"{kind} "):
            for measurement in measurements:
                size = int(measurement.settings["environments"])
                found.setdefault(measurement.name, {})[size] = measurement.steps_per_second
    return found


def efficiency(curve: Curve) -> dict[int, float]:
    """Throughput of N environments, divided by N times that of one."""
    return {size: rate / (size * curve[1]) for size, rate in curve.items()}


def fastest_backend(by_backend: Mapping[str, Curve], size: int) -> str:
    """Fastest backend among those that were measured at a size."""
    measured = {name: curve[size] for name, curve in by_backend.items() if size in curve}
    return max(measured, key=measured.__getitem__)


def crossings(by_backend: Mapping[str, Curve]) -> Iterator[Crossing]:
    """All changes of the faster of two backends, interpolated between sizes on log scales."""
    for one, other in combinations(by_backend, 2):
        a, b = by_backend[one], by_backend[other]
        sizes = sorted(a.keys() & b.keys())
        leads = {size: math.log(a[size] / b[size]) for size in sizes}
        for below, above in pairwise(sizes):
            if leads[below] * leads[above] < 0:
                fraction = leads[below] / (leads[below] - leads[above])
                crossing = below * (above / below) ** fraction
                pair = (one, other) if leads[below] > 0 else (other, one)
                yield Crossing(*pair, environments=crossing)


def fastest_ranges(by_backend: Mapping[str, Curve]) -> list[Fastest]:
    """Fastest backend by size; neighboring sizes with the same backend are merged."""
    ranges: list[Fastest] = []
    for size in sorted({size for curve in by_backend.values() for size in curve}):
        backend = fastest_backend(by_backend, size)
        if ranges and ranges[-1].backend == backend:
            ranges[-1] = Fastest(ranges[-1].first, size, backend)
        else:
            ranges.append(Fastest(size, size, backend))
    return ranges


def fit_cost(curve: Curve, processes: int) -> tuple[float, float]:
    """Fit the cost model of `auto_backend`: seconds per step, and per environment of a process.

    Least squares of the relative error; the process with the most environments counts.
    """
    seconds = np.array([size / rate for size, rate in curve.items()])
    largest = np.array([math.ceil(size / min(size, processes)) for size in curve])
    terms = np.stack([np.ones_like(seconds), largest]) / seconds
    (fixed, each), *_ = np.linalg.lstsq(terms.T, np.ones_like(seconds), rcond=None)
    return float(fixed), float(each)


class CpuTimer:
    """Wraps a timer and adds up the CPU time of this process and its descendants."""

    def __init__(self, timer: Timer) -> None:
        """Wrap this timer."""
        self._timer = timer
        self.calls = 0
        self.cpu_seconds = 0.0

    def __call__(self, calls: int, /) -> float:
        """Return the seconds of `calls` calls."""
        processes = system_load.process_tree()
        before = system_load.cpu_seconds(processes)
        elapsed = self._timer(calls)
        self.cpu_seconds += system_load.cpu_seconds(processes) - before
        self.calls += calls
        return elapsed


class _Sweep:
    """Creates the contenders and keeps their CPU timers."""

    def __init__(self, config: ScalingConfig) -> None:
        self._config = config
        self._timers: dict[str, dict[str, CpuTimer]] = {}
        self.auto: dict[str, str] = {}
        """Backend that `auto` chooses, by group."""

    def idle_groups(self) -> Iterator[tuple[str, list[MakeContender]]]:
        for kind, size in product(KINDS, self._config.sizes):
            yield self._group(f"{kind} {size}", KINDS[kind], size, self._config.max_pipes)

    def busy_groups(self) -> Iterator[tuple[str, list[MakeContender]]]:
        for kind, size in product(KINDS, self._config.busy_sizes):
            yield self._group(f"{BUSY} {kind} {size}", KINDS[kind], size, 0)

    def _group(
        self, group: str, env_fn: EnvFn, size: int, max_pipes: int
    ) -> tuple[str, list[MakeContender]]:
        self._timers[group] = {}
        is_native = env_fn is Cage2Env
        self.auto[group] = "native" if is_native else auto_backend.choose_backend([env_fn] * size)
        contenders = _contenders(env_fn, size, max_pipes)
        return group, [partial(self._timed, group, name, make) for name, make in contenders]

    def steps_per_cpu_second(self, kind: str, size: int, backend: str) -> float:
        """Environment steps per second of CPU time, the warm-up included."""
        timer = self._timers[f"{kind} {size}"][backend]
        return size * timer.calls / max(timer.cpu_seconds, 1e-9)

    def _timed(self, group: str, name: str, make: MakeContender, stack: ExitStack) -> Contender:
        contender = make(stack)
        timer = self._timers[group][name] = CpuTimer(contender.timer)
        return replace(contender, name=name, timer=timer)


@contextmanager
def _run_busy_processes(count: int) -> Iterator[None]:
    """Run processes that compute all the time; they end with this one at the latest."""
    with ExitStack() as stack:
        for _ in range(count):
            process = subprocess.Popen([sys.executable, "-c", _BUSY_PROGRAM])
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


def _contenders(env_fn: EnvFn, size: int, max_pipes: int) -> Iterator[tuple[str, MakeContender]]:
    env_fns = [env_fn] * size
    actions = 1
    if env_fn is Cage2Env:
        actions = _core.ACTION_COUNT
        yield "native", Native(num_envs=size)
    yield "sync", Gymnasium(backend="sync", env_fns=env_fns, action_count=actions)
    processes = min(size, usable_cores())
    yield (
        "workers",
        Workers(name="workers", env_fns=env_fns, workers=processes, action_count=actions),
    )
    if size <= max_pipes:
        yield "pipes", Gymnasium(backend="pipes", env_fns=env_fns, action_count=actions)


def _auto_ratios(groups: Groups, auto: Mapping[str, str]) -> dict[str, float]:
    """Throughput of the backend that `auto` chooses, divided by that of the fastest."""
    ratios = {}
    for group, choice in auto.items():
        rate = rates(groups[group])
        ratios[f"{group}: auto ({choice}) / fastest"] = round(rate[choice] / max(rate.values()), 3)
    return ratios


def _cost_model(by_backend: Mapping[str, Curve]) -> dict[str, Any]:
    """Microseconds of the cost model of `auto_backend`, and those fitted to this run."""
    cores = usable_cores()
    return {
        name: {
            "model": _microseconds(cost.fixed_s, cost.per_env_s),
            "measured": _microseconds(*fit_cost(by_backend[name], 1 if name == "sync" else cores)),
        }
        for name, cost in auto_backend.COSTS.items()
    }


def _microseconds(fixed_seconds: float, each_seconds: float) -> dict[str, float]:
    return {"fixed": round(1e6 * fixed_seconds, 2), "each": round(1e6 * each_seconds, 2)}


def _scaling(kind: str, groups: Groups, sweep: _Sweep) -> dict[str, Any]:
    by_backend = curves(groups, kind)
    sizes = sorted({size for curve in by_backend.values() for size in curve})
    return {
        "efficiency": {
            name: {str(size): significant(share) for size, share in efficiency(curve).items()}
            for name, curve in by_backend.items()
        },
        "steps_per_cpu_second": {
            name: {str(size): round(sweep.steps_per_cpu_second(kind, size, name)) for size in curve}
            for name, curve in by_backend.items()
        },
        "crossings": [
            {**asdict(crossing), "environments": round(crossing.environments, 1)}
            for crossing in crossings(by_backend)
        ],
        "recommendation": [asdict(range_) for range_ in fastest_ranges(by_backend)],
        "auto": {
            str(size): {
                "choice": sweep.auto[f"{kind} {size}"],
                "fastest": fastest_backend(by_backend, size),
            }
            for size in sizes
        },
    }

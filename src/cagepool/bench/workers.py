"""Worker processes: overhead per step, and throughput with environments of unequal speed.

The overhead is measured with environments that cost almost nothing, and compared with that of
other libraries. The stragglers bench compares `step` (barrier) and `send`/`recv` (asynchronous)
with the throughput at which no environment waits for another, and with that of bare loops:
processes that step their own environment without any communication.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from itertools import product

import psutil

from cagepool.bench import system_load
from cagepool.bench.contenders import (
    BareLoops,
    ComputingEnv,
    DummyEnv,
    Gymnasium,
    SharedWorkers,
    SleepingEnv,
    Workers,
    ray_actors,
    sb3_subproc,
)
from cagepool.bench.measure import Figures, MakeContender, Pace, Progress, measure_groups
from cagepool.bench.schema import Groups, rates
from cagepool.envs import WorkerVectorEnv
from cagepool.envs.env_fns import EnvFn
from cagepool.envs.workers.pool import usable_cores

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

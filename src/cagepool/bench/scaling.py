"""Scaling: throughput by number of environments and backend, and the choice of `backend="auto"`."""

import math
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import combinations, pairwise, product
from typing import Any, TypeAlias

import numpy as np

from cagepool import _core
from cagepool.bench import system_load
from cagepool.bench.contenders import ComputingEnv, DummyEnv, Gymnasium, Native, Workers
from cagepool.bench.measure import (
    Contender,
    Figures,
    MakeContender,
    Pace,
    Progress,
    Timer,
    measure_groups,
)
from cagepool.bench.schema import Groups, rates, significant
from cagepool.bench.workers import COMPUTE_SECONDS
from cagepool.envs import auto_backend
from cagepool.envs.cage2_env import Cage2Env
from cagepool.envs.env_fns import EnvFn
from cagepool.envs.workers.pool import usable_cores

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

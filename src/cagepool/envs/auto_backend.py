"""Choice of `backend="auto"` for environments other than CAGE-2: a measurement on the spot."""

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, NamedTuple, TypeAlias

from cagepool import _core
from cagepool._machine import usable_cores
from cagepool.envs.vector_args import AnyEnv, EnvFn
from cagepool.envs.workers.shared_memory import missing_system_calls

CandidateBackend: TypeAlias = Literal["sync", "workers", "pipes"]

MAX_TIME_RATIO = 0.85  # to `sync`; less gain is not worth the processes
MAX_OVERHEAD_RATIO = 0.7  # the same of the overhead alone, before an environment is tried
TRIAL_STEPS, TRIAL_S = 20, 0.01  # a trial ends at whichever comes first
MIN_WAIT_S = 20e-6  # shorter waits are the resolution of the clocks
ROUNDS, TURN_S = 5, 0.008  # of a rehearsal, of which there are at most two
MAX_REHEARSED_S = 0.0015  # steps of a worker that take longer outweigh any overhead
MAX_REHEARSED_LOOP_S = 0.03  # the same for a step of all environments in one process

logger = logging.getLogger(__name__)


class StepCost(NamedTuple):
    """Seconds of one step of one environment."""

    compute_s: float
    wait_s: float = 0.0


@dataclass(frozen=True)
class BackendCost:
    """Overhead of a backend for one step of all environments."""

    fixed_s: float
    """Independent of the number of environments."""
    per_env_s: float
    """Per environment of the process that has most of them."""


# Fitted to rates on an idle 2-core machine; `cagepool bench scaling` shows the fit on yours.
COSTS: dict[CandidateBackend, BackendCost] = {
    "sync": BackendCost(8e-6, 0.9e-6),
    "workers": BackendCost(20e-6, 0.25e-6),
    "pipes": BackendCost(110e-6, 120e-6),
}
PARENT_S = 15e-6  # the part of the fixed overhead of `workers` that is no waking and waiting


def choose_backend(env_fns: Sequence[EnvFn]) -> CandidateBackend:
    """Choose the backend that is faster at this moment, with the other programs that run now.

    Without environments, a step of all of them is rehearsed in one thread and in several. If that
    depends on the cost of an environment's step, one environment is made, stepped for some
    milliseconds and closed. The choice does not change trajectories.
    """
    if len(env_fns) == 1:
        return "sync"
    parallel: CandidateBackend = "pipes" if missing_system_calls() else "workers"
    num_envs, processes = len(env_fns), usable_cores()
    # The gain of processes grows with the cost of a step, so 0 is the worst case.
    cost: StepCost | None = StepCost(0.0)
    ratio = time_ratio(parallel, num_envs, StepCost(0.0), processes)
    if ratio > MAX_OVERHEAD_RATIO:
        cost = measure_step(env_fns[0])
        if cost is not None:
            ratio = time_ratio(parallel, num_envs, cost, processes)
            if ratio > MAX_TIME_RATIO:
                parallel = "sync"
    logger.info(
        "backend 'auto' is %r for %d environments with %s: time of processes / time of sync %.2f",
        *(parallel, num_envs, cost, ratio),
    )
    return parallel


def time_ratio(backend: CandidateBackend, num_envs: int, cost: StepCost, processes: int) -> float:
    """Time of a step of all environments with a parallel backend, divided by that with `sync`."""
    used_processes = min(num_envs, processes)
    if used_processes == 1:
        return math.inf
    step_s = sum(cost)
    is_long = (
        math.ceil(num_envs / used_processes) * step_s > MAX_REHEARSED_S
        or num_envs * step_s > MAX_REHEARSED_LOOP_S
    )
    if backend == "pipes" or is_long:
        return predict_step_s(backend, num_envs, step_s, processes) / predict_step_s(
            "sync", num_envs, step_s, processes
        )
    rounds = rehearse(num_envs, cost, used_processes)
    # The median: on a busy machine either side can lose several time slices in one round.
    return median(workers_s / sync_s for sync_s, workers_s in rounds)


def rehearse(num_envs: int, cost: StepCost, processes: int) -> list[tuple[float, float]]:
    """Measure a step of all environments with `sync` and with `workers`, without environments.

    Returns:
        Seconds of both by round.
    """
    envs_per_worker = math.ceil(num_envs / processes)
    sync, workers = COSTS["sync"], COSTS["workers"]
    return _core.rehearse(
        loop=(
            sync.fixed_s + num_envs * (cost.compute_s + sync.per_env_s),
            num_envs * cost.wait_s,
        ),
        worker=(
            envs_per_worker * (cost.compute_s + workers.per_env_s),
            envs_per_worker * cost.wait_s,
        ),
        parent_s=PARENT_S,
        workers=processes,
        rounds=ROUNDS,
        turn_s=TURN_S,
    )


def predict_step_s(
    backend: CandidateBackend, num_envs: int, step_s: float, processes: int
) -> float:
    """Seconds on an idle machine for one step of all environments, if one takes `step_s`."""
    used_processes = 1 if backend == "sync" else min(num_envs, processes)
    cost = COSTS[backend]
    return cost.fixed_s + math.ceil(num_envs / used_processes) * (step_s + cost.per_env_s)


def measure_step(env_fn: EnvFn) -> StepCost | None:
    """Measure steps of one environment, which is closed; None if the environment fails."""
    try:
        env = env_fn()
        try:
            return _median_step(env)
        finally:
            env.close()
    except Exception:  # noqa: BLE001 - the backend will report the fault
        return None


def _median_step(env: AnyEnv) -> StepCost:
    env.action_space.seed(0)
    env.reset(seed=0)
    cost, clocks = _Stopwatch(), _Stopwatch()
    until_s = time.perf_counter() + TRIAL_S
    while cost.count < TRIAL_STEPS and (not cost.count or time.perf_counter() < until_s):
        action = env.action_space.sample()
        with clocks:
            pass
        with cost:
            _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    # The clocks alone take as long as ten steps of a cheap environment.
    compute_s = max(0.0, cost.compute_s - clocks.compute_s)
    wait_s = cost.elapsed_s - clocks.elapsed_s - compute_s
    return StepCost(compute_s, wait_s if wait_s > MIN_WAIT_S else 0.0)


class _Stopwatch:
    """Context that measures its elapsed and its CPU time; the medians of all uses."""

    def __init__(self) -> None:
        self._elapsed_s: list[float] = []
        self._computed_s: list[float] = []

    def __enter__(self) -> None:
        self._started_s, self._started_cpu_s = time.perf_counter(), time.thread_time()

    def __exit__(self, *_: object) -> None:
        self._computed_s.append(time.thread_time() - self._started_cpu_s)
        self._elapsed_s.append(time.perf_counter() - self._started_s)

    @property
    def count(self) -> int:
        return len(self._elapsed_s)

    @property
    def elapsed_s(self) -> float:
        return median(self._elapsed_s)

    @property
    def compute_s(self) -> float:
        return median(self._computed_s)

"""Cost model of `backend="auto"`: chooses a backend for environments other than CAGE-2."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, TypeAlias

from cagepool.envs.env_fns import AnyEnv, EnvFn
from cagepool.envs.workers.pool import usable_cores
from cagepool.envs.workers.shared_memory import missing_system_calls

CandidateBackend: TypeAlias = Literal["sync", "workers", "pipes"]

MAX_TIME_RATIO = 0.9  # to `sync`; less gain is lost when other programs use the cores
TRIAL_STEPS, TRIAL_S = 20, 0.01  # a trial ends at whichever comes first


@dataclass(frozen=True)
class BackendCost:
    """Overhead of a backend for one step of all environments."""

    fixed_s: float
    """Independent of the number of environments."""
    per_env_s: float
    """Per environment of the process that has most of them."""


# Fitted to rates on an idle 2-core machine; `cagepool bench scaling` shows the fit on yours.
COSTS: dict[CandidateBackend, BackendCost] = {
    "sync": BackendCost(11.5e-6, 1.1e-6),
    "workers": BackendCost(19e-6, 0.8e-6),
    "pipes": BackendCost(110e-6, 120e-6),
}


def choose_backend(env_fns: Sequence[EnvFn]) -> CandidateBackend:
    """Choose the backend with the lowest predicted time per step.

    If that depends on the cost of an environment's step, one environment is made and stepped for
    some milliseconds.
    """
    if len(env_fns) == 1:
        return "sync"
    parallel: CandidateBackend = "pipes" if missing_system_calls() else "workers"
    num_envs, processes = len(env_fns), usable_cores()
    # The gain of processes grows with the cost of a step, so 0 is the worst case.
    if is_worthwhile(parallel, num_envs, 0.0, processes):
        return parallel
    step_s = measure_step_s(env_fns[0])
    if step_s is None or is_worthwhile(parallel, num_envs, step_s, processes):
        return parallel
    return "sync"


def is_worthwhile(backend: CandidateBackend, num_envs: int, step_s: float, processes: int) -> bool:
    """Whether a backend is predicted to be clearly faster than `sync`."""
    sync_s = predict_step_s("sync", num_envs, step_s, processes)
    return predict_step_s(backend, num_envs, step_s, processes) < MAX_TIME_RATIO * sync_s


def predict_step_s(
    backend: CandidateBackend, num_envs: int, step_s: float, processes: int
) -> float:
    """Predicted seconds for one step of all environments, if one environment takes `step_s`."""
    used_processes = 1 if backend == "sync" else min(num_envs, processes)
    cost = COSTS[backend]
    return cost.fixed_s + math.ceil(num_envs / used_processes) * (step_s + cost.per_env_s)


def measure_step_s(env_fn: EnvFn) -> float | None:
    """Measure the median seconds of a step of one environment; None if the environment fails."""
    try:
        env = env_fn()
        try:
            return _median_step_s(env)
        finally:
            env.close()
    except Exception:  # noqa: BLE001 - the backend will report the fault
        return None


def _median_step_s(env: AnyEnv) -> float:
    env.action_space.seed(0)
    env.reset(seed=0)
    durations_s: list[float] = []
    until_s = time.perf_counter() + TRIAL_S
    while len(durations_s) < TRIAL_STEPS and (not durations_s or time.perf_counter() < until_s):
        action = env.action_space.sample()
        started_s = time.perf_counter()
        _, _, terminated, truncated, _ = env.step(action)
        durations_s.append(time.perf_counter() - started_s)
        if terminated or truncated:
            env.reset()
    return median(durations_s)

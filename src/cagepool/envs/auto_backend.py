"""Which backend `auto` takes for environments that are not ours."""

import math
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, TypeAlias

from cagepool.envs.env_fns import AnyEnv, Maker

Choice: TypeAlias = Literal["sync", "workers", "pipes"]

WORTHWHILE = 0.9  # of the time of a loop: whoever else wants the cores hurts processes more
TRIAL_STEPS, TRIAL_S = 20, 0.01  # whichever comes first


@dataclass(frozen=True)
class Cost:
    """What a backend takes for one step of all environments, beside their own work."""

    fixed_s: float
    """Whatever their number."""
    each_s: float
    """For each environment of the process that has most of them."""


# Fitted to rates of an idle 2-core machine; `cagepool bench scaling` tells how well they fit yours.
COSTS: dict[Choice, Cost] = {
    "sync": Cost(11.5e-6, 1.1e-6),
    "workers": Cost(19e-6, 0.8e-6),
    "pipes": Cost(110e-6, 120e-6),
}


def backend_for(makers: Sequence[Maker]) -> Choice:
    """The backend that is expected to be fastest for these environments.

    Where that depends on what a step of them costs, one is made and tried for some milliseconds.
    """
    if len(makers) == 1:
        return "sync"
    parallel: Choice = "workers" if sys.platform == "linux" else "pipes"
    count, processes = len(makers), cores()
    # What costs more gains more from processes.
    if pays(parallel, count, 0.0, processes):
        return parallel
    step_s = tried(makers[0])
    return parallel if step_s is None or pays(parallel, count, step_s, processes) else "sync"


def pays(backend: Choice, num_envs: int, step_s: float, processes: int) -> bool:
    """Whether a backend is enough faster than a loop to be worth its processes."""
    alone_s = seconds("sync", num_envs, step_s, processes)
    return seconds(backend, num_envs, step_s, processes) < WORTHWHILE * alone_s


def seconds(backend: Choice, num_envs: int, step_s: float, processes: int) -> float:
    """What a step of all environments takes, if a step of one takes `step_s`."""
    together = 1 if backend == "sync" else min(num_envs, processes)
    cost = COSTS[backend]
    return cost.fixed_s + math.ceil(num_envs / together) * (step_s + cost.each_s)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def tried(maker: Maker) -> float | None:
    """Seconds of a step, the median of a few; none: it fails."""
    try:
        env = maker()
        try:
            return _step_seconds(env)
        finally:
            env.close()
    except Exception:  # noqa: BLE001 - whatever is wrong will be told by the backend
        return None


def _step_seconds(env: AnyEnv) -> float:
    env.action_space.seed(0)
    env.reset(seed=0)
    taken: list[float] = []
    until_s = time.perf_counter() + TRIAL_S
    while len(taken) < TRIAL_STEPS and (not taken or time.perf_counter() < until_s):
        action = env.action_space.sample()
        began_s = time.perf_counter()
        _, _, terminated, truncated, _ = env.step(action)
        taken.append(time.perf_counter() - began_s)
        if terminated or truncated:
            env.reset()
    return median(taken)

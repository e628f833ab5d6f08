"""CybORG in worker processes, and the cost of reading the true state twice per step."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from typing import Any

from benchmarks.suites.true_state import PRELOAD
from cagepool import _core
from cagepool.bench.measure import (
    Contender,
    Figures,
    Gymnasium,
    MakeContender,
    Pace,
    Progress,
    Workers,
    measure_groups,
    pipes_only,
    random_actions,
    time_calls,
)
from cagepool.bench.schema import Groups, rates
from cagepool.bench.workers import ASYNCHRONOUS, BARRIER
from cagepool.cyborg import CybORGEnv
from cagepool.envs import make_vec
from cagepool.envs.vector_args import EnvFn

LOOP = "Gymnasium, sync"
WITH_TRUE_STATE = f"{ASYNCHRONOUS}, true state"
ORDER = "critical_first"  # compliance is computed in the native games
LONG_EPISODES = partial(CybORGEnv, max_steps=_core.MAX_STEPS)  # a reset costs about ten steps
SPEED, TWICE = "CybORG", "true state twice"
PIPES = "pipes, dictionary"


@dataclass(frozen=True, kw_only=True)
class CyborgConfig:
    """Settings of this bench."""

    pace: Pace = field(default_factory=lambda: Pace(repetitions=5, seconds=1.0))
    sizes: tuple[int, ...] = (20, 100)
    """Numbers of environments."""
    workers: int = 2


def measure_cyborg(config: CyborgConfig, progress: Progress) -> Figures:
    """Measure each number of environments.

    Raises:
        CybORGNotFoundError: CybORG is not installed.
    """
    CybORGEnv()
    groups = measure_groups(_groups(config), config.pace, progress, PRELOAD)
    return Figures(groups=groups, ratios=cyborg_ratios(groups))


def cyborg_ratios(groups: Groups) -> dict[str, float]:
    """Ratios that documents cite."""
    ratios = {}
    for group, measurements in groups.items():
        rate = rates(measurements)
        base = PIPES if group.startswith(TWICE) else LOOP
        for name in rate.keys() - {base}:
            ratios[f"{group}: {name} / {base}"] = rate[name] / rate[base]
        if WITH_TRUE_STATE in rate:
            share = rate[WITH_TRUE_STATE] / rate[ASYNCHRONOUS]
            ratios[f"{group}: with the true state / without"] = share
    return {name: round(ratios[name], 3) for name in sorted(ratios)}


def _groups(config: CyborgConfig) -> Iterator[tuple[str, list[MakeContender]]]:
    for size in config.sizes:
        env_fns: list[EnvFn] = [CybORGEnv] * size
        actions = _core.ACTION_COUNT
        workers = partial(
            Workers, env_fns=env_fns, workers=config.workers, min_ready=1, action_count=actions
        )
        yield (
            f"{SPEED} {size}",
            [
                Gymnasium(backend="sync", env_fns=env_fns, action_count=actions),
                workers(name=BARRIER, min_ready=0),
                workers(name=ASYNCHRONOUS),
                workers(name=WITH_TRUE_STATE, true_state="every"),
            ],
        )
        yield f"{TWICE}, {size}", list(_true_state_twice(size, config.workers))


def _true_state_twice(size: int, workers: int) -> Iterator[MakeContender]:
    """The same work on each backend: read all true states, step, read all true states."""
    env_fns: list[EnvFn] = [LONG_EPISODES] * size
    makers: dict[str, Callable[[], Any]] = {
        PIPES: partial(pipes_only, env_fns),
        "shared memory, dictionary": partial(make_vec, size, env=env_fns, backend="pipes"),
        "one process, dictionary": partial(make_vec, size, env=env_fns, backend="sync"),
    }
    for name, make in makers.items():
        yield partial(_contender, name, make, lambda envs: envs.call("true_state_dict"))
    pool = partial(make_vec, size, env=env_fns, backend="workers", workers=workers)
    yield partial(
        _contender,
        "cagepool workers, array",
        partial(pool, true_state="every"),
        lambda envs: envs.true_state.access.copy(),
    )
    yield partial(
        _contender,
        "cagepool native, array",
        partial(make_vec, size, max_steps=_core.MAX_STEPS, order=ORDER),
        lambda envs: envs.true_state.access.copy(),
    )


def _contender(
    name: str, make: Callable[[], Any], read: Callable[[Any], object], stack: ExitStack
) -> Contender:
    envs = make()
    stack.callback(envs.close)
    envs.reset(seed=0)
    actions = cycle(random_actions(envs.num_envs))

    def step() -> None:
        read(envs)
        envs.step(next(actions))
        read(envs)

    return Contender(
        name=name,
        settings={"environments": envs.num_envs},
        steps_per_call=envs.num_envs,
        timer=time_calls(step),
    )

"""How fast real CybORG is in worker processes, and what it takes to know the true state twice."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

from cagepool import _core
from cagepool.bench import machine
from cagepool.bench.contenders import Gymnasium, Ours, random_actions
from cagepool.bench.dummy_envs import pipes_only
from cagepool.bench.measure import Contender, Pace, Settings, timed
from cagepool.bench.result import Result
from cagepool.bench.turns import Make, compared
from cagepool.cyborg import CybORGEnv
from cagepool.envs import make_vec
from cagepool.envs.env_fns import EnvFn

LOOP = "Gymnasium, sync"
ORDER = "critical_first"  # by which the native games judge blue meanwhile
ENDLESS = partial(CybORGEnv, max_steps=_core.MAX_STEPS)  # resets take some ten steps' time
SPEED, TWICE = "CybORG", "true state twice"
PIPES = "pipes, dictionary"


@dataclass(frozen=True, kw_only=True)
class CyborgConfig:
    """What to measure."""

    pace: Pace = field(default_factory=lambda: Pace(repetitions=5, seconds=1.0))
    sizes: tuple[int, ...] = (20, 100)
    """Numbers of environments."""
    workers: int = 2
    """Processes."""


@dataclass(frozen=True, kw_only=True)
class CyborgResult(Result):
    """CybORG in worker processes beside CybORG in one."""

    @property
    def ratios(self) -> dict[str, float]:
        """The figures that claims are made of, each from one group."""
        ratios = {}
        for group, members in self.groups.items():
            rates = {one.name: 1e9 / median(one.nanoseconds) for one in members}
            if group.startswith(TWICE):
                for name in rates.keys() - {PIPES}:
                    ratios[f"{group}: {name} / {PIPES}"] = rates[name] / rates[PIPES]
                continue
            for name in rates.keys() - {LOOP}:
                ratios[f"{group}: {name} / one process"] = rates[name] / rates[LOOP]
            kept = rates["ours, free, true state"] / rates["ours, free"]
            ratios[f"{group}: rate kept with the true state"] = kept
        return {name: round(ratios[name], 3) for name in sorted(ratios)}


def measure_cyborg(
    config: CyborgConfig, progress: Callable[[str, int, int], object]
) -> CyborgResult:
    """Measure group after group; `progress` is told the group and the turns done and in all.

    Raises:
        CybORGNotFoundError: it is not there.
    """
    CybORGEnv()
    before = machine.describe()
    groups = compared(_groups(config), config.pace, progress)
    return CyborgResult(machine=before, load_after=machine.load(), groups=groups)


def _groups(config: CyborgConfig) -> Iterator[tuple[str, list[Make]]]:
    for size in config.sizes:
        makers: list[EnvFn] = [CybORGEnv] * size
        ours = partial(
            Ours, makers=makers, workers=config.workers, min_ready=1, actions=_core.ACTION_COUNT
        )
        yield (
            f"{SPEED} {size}",
            [
                Gymnasium(backend="sync", makers=makers, actions=_core.ACTION_COUNT),
                ours(name="ours, barrier", min_ready=0),
                ours(name="ours, free"),
                ours(name="ours, free, true state", true_state="every"),
            ],
        )
        yield f"{TWICE}, {size}", list(_twice(size, config.workers))


def _twice(size: int, workers: int) -> Iterator[Make]:
    """The same work in many ways: every environment is stepped, its true state before and after."""
    makers: list[EnvFn] = [ENDLESS] * size
    ways: dict[str, Callable[[], Any]] = {
        PIPES: partial(pipes_only, makers),
        "shared memory, dictionary": partial(make_vec, size, env=makers, backend="pipes"),
        "one process, dictionary": partial(make_vec, size, env=makers, backend="sync"),
    }
    for name, make in ways.items():
        yield partial(_looking, name, make, lambda envs: envs.call("true_state_dict"))
    ours = partial(make_vec, size, env=makers, backend="workers", workers=workers)
    yield partial(
        _looking,
        "ours, workers, array",
        partial(ours, true_state="every"),
        lambda envs: envs.true_state.access.copy(),
    )
    yield partial(
        _looking,
        "ours, native, array",
        partial(make_vec, size, max_steps=_core.MAX_STEPS, order=ORDER),
        lambda envs: envs.true_state.access.copy(),
    )


def _looking(
    name: str, make: Callable[[], Any], look: Callable[[Any], object], stack: ExitStack
) -> Contender:
    envs = make()
    stack.callback(envs.close)
    envs.reset(seed=0)
    actions = random_actions(envs.num_envs)
    turn = 0

    def step() -> None:
        nonlocal turn
        turn += 1
        look(envs)
        envs.step(actions[turn % len(actions)])
        look(envs)

    settings: Settings = {"environments": envs.num_envs}
    return Contender(name=name, settings=settings, steps=envs.num_envs, clock=timed(step))

"""How much of the ideal rate is left when environments differ in speed, with a barrier and free."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from cagepool.bench import machine
from cagepool.bench.contenders import Gymnasium, Ours
from cagepool.bench.dummy_envs import Waiting, Working
from cagepool.bench.measure import Pace
from cagepool.bench.result import Result
from cagepool.bench.turns import Make, compared
from cagepool.envs.env_fns import EnvFn
from cagepool.envs.workers.pool import usable_cores

WAITING_S = 0.005  # mean, of environments that wait
WORKING_S = 200e-6  # of environments that compute
SLOWER = 5  # times, of one environment among many

TAIL, ONE_WAITS, ONE_WORKS = "heavy tail", "one slow", "one slow, computing"


@dataclass(frozen=True, kw_only=True)
class StragglersConfig:
    """What to measure."""

    pace: Pace = field(default_factory=lambda: Pace(repetitions=5, seconds=0.5))
    waiting: int = 100
    """Environments that wait, each in a process of its own."""
    working: int = 100
    """Environments that compute, on as many workers as there are cores."""


@dataclass(frozen=True, kw_only=True)
class StragglersResult(Result):
    """Barrier and free mode beside the rate at which no environment waits for another."""

    config: StragglersConfig

    @property
    def ideal(self) -> dict[str, float]:
        """Steps a second by group, if nothing but the environments themselves took time."""
        others = self.config.waiting - 1
        processes = min(usable_cores(), self.config.working)
        return {
            TAIL: self.config.waiting / WAITING_S,
            ONE_WAITS: (others + 1 / SLOWER) / WAITING_S,
            # All take as many steps as each other, and no core is ever idle.
            ONE_WORKS: processes
            * self.config.working
            / ((self.config.working - 1 + SLOWER) * WORKING_S),
        }

    @property
    def ratios(self) -> dict[str, float]:
        """The figures that claims are made of, each from one group."""
        return {
            f"{group}: {one.name}, of the ideal rate": round(
                one.steps_per_second / self.ideal[group], 3
            )
            for group, members in self.groups.items()
            for one in members
        }

    def facts(self) -> dict[str, object]:
        """What else belongs into the JSON."""
        return {"ideal_steps_per_second": {k: round(rate) for k, rate in self.ideal.items()}}


def measure_stragglers(
    config: StragglersConfig, progress: Callable[[str, int, int], object]
) -> StragglersResult:
    """Measure group after group; `progress` is told the group and the turns done and in all."""
    before = machine.describe()
    groups = compared(_groups(config), config.pace, progress)
    return StragglersResult(machine=before, load_after=machine.load(), groups=groups, config=config)


def _groups(config: StragglersConfig) -> Iterator[tuple[str, list[Make]]]:
    tails: list[EnvFn] = [partial(Waiting, WAITING_S)] * config.waiting
    yield TAIL, _modes(tails, config.waiting)
    yield ONE_WAITS, _modes([partial(Waiting, SLOWER * WAITING_S), *tails[1:]], config.waiting)
    alike: list[EnvFn] = [partial(Working, WORKING_S)] * config.working
    one_slow: list[EnvFn] = [partial(Working, SLOWER * WORKING_S), *alike[1:]]
    yield ONE_WORKS, _modes(one_slow, min(usable_cores(), config.working))


def _modes(makers: list[EnvFn], workers: int) -> list[Make]:
    ours = partial(Ours, makers=makers, workers=workers)
    few = max(2, len(makers) // 10)
    modes: list[Make] = [
        ours(name="ours, free, min_ready 1", min_ready=1),
        ours(name=f"ours, free, min_ready {few}", min_ready=few),
        ours(name="ours, barrier"),
    ]
    if workers == len(makers):
        modes.append(Gymnasium(backend="pipes", makers=makers))
    return modes

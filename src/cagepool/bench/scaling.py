"""How rates grow with the number of environments, backend by backend, and what `auto` takes."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from statistics import median

from cagepool import _core
from cagepool.bench import machine, sweep
from cagepool.bench.contenders import Gymnasium, Native, Ours
from cagepool.bench.dummy_envs import Probe, Working
from cagepool.bench.measure import Contender, Pace
from cagepool.bench.processes import BothClocks
from cagepool.bench.result import Result
from cagepool.bench.stragglers import WORKING_S
from cagepool.bench.turns import Make, compared
from cagepool.envs import auto_backend
from cagepool.envs.cage2_env import Cage2Env
from cagepool.envs.env_fns import EnvFn
from cagepool.envs.workers.pool import usable_cores

SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000)
KINDS: dict[str, EnvFn] = {
    "CAGE-2": Cage2Env,
    "cheap": Probe,
    "costly": partial(Working, WORKING_S),
}


@dataclass(frozen=True, kw_only=True)
class ScalingConfig:
    """What to measure."""

    pace: Pace = field(default_factory=lambda: Pace(repetitions=5, seconds=0.2))
    sizes: tuple[int, ...] = SIZES
    """Numbers of environments; 1 is among them."""
    most_pipes: int = 200
    """Processes that are started for Gymnasium's pipes at most: one an environment."""

    def __post_init__(self) -> None:
        """Check that there is something to compare with."""
        if 1 not in self.sizes:
            raise ValueError(f"sizes must hold 1, got {self.sizes}")


@dataclass(frozen=True, kw_only=True)
class ScalingResult(Result):
    """Rates by kind of environment, number and backend."""

    processor_s: dict[str, dict[str, float]]
    """Of a step on all cores together, by group and backend."""
    picks: dict[str, str]
    """What `auto` takes, by group."""
    most_pipes: int

    def rates(self, kind: str) -> dict[str, dict[int, float]]:
        """Median steps a second by backend and number of environments."""
        rates: dict[str, dict[int, float]] = {}
        for group, members in self.groups.items():
            if group.startswith(f"{kind} "):
                for one in members:
                    rates.setdefault(one.name, {})[one.steps] = one.steps_per_second
        return rates

    @property
    def ratios(self) -> dict[str, float]:
        """The figures that claims are made of, each from one group."""
        ratios = {}
        for group, pick in self.picks.items():
            rates = {one.name: one.steps_per_second for one in self.groups[group]}
            ratios[f"{group}: auto ({pick}) / best"] = round(rates[pick] / max(rates.values()), 3)
        return ratios

    def facts(self) -> dict[str, object]:
        """What else belongs into the JSON."""
        return {
            "left_out": f"pipes above {self.most_pipes} environments: each is a process",
            "rule": self._rule(),
            "scaling": {kind: self._scaling(kind) for kind in KINDS},
        }

    def _rule(self) -> dict[str, object]:
        """Microseconds that `auto` reckons with, beside those of this run."""
        rates, cores = self.rates("cheap"), usable_cores()
        here = {
            name: sweep.fitted(of, 1 if name == "sync" else cores) for name, of in rates.items()
        }
        return {
            name: {
                "reckoned": _microseconds(cost.fixed_s, cost.per_env_s),
                "measured": _microseconds(*here[name]),
            }
            for name, cost in auto_backend.COSTS.items()
        }

    def _scaling(self, kind: str) -> dict[str, object]:
        rates = self.rates(kind)
        return {
            "efficiency": {
                name: {size: float(f"{value:.4g}") for size, value in sweep.efficiency(of).items()}
                for name, of in rates.items()
            },
            "steps_per_cpu_second": {
                name: {size: round(1 / self.processor_s[f"{kind} {size}"][name]) for size in of}
                for name, of in rates.items()
            },
            "crossings": [
                {**asdict(one), "environments": round(one.environments, 1)}
                for one in sweep.crossings(rates)
            ],
            "recommendation": [asdict(one) for one in sweep.advice(rates)],
            "auto": {
                size: {"takes": self.picks[f"{kind} {size}"], "best": sweep.best(rates, size)}
                for size in sorted({size for of in rates.values() for size in of})
            },
        }


def measure_scaling(
    config: ScalingConfig, progress: Callable[[str, int, int], object]
) -> ScalingResult:
    """Measure group after group; `progress` is told the group and the turns done and in all."""
    before = machine.describe()
    watch = _Watch(config)
    groups = compared(watch.groups(), config.pace, progress)
    return ScalingResult(
        machine=before,
        load_after=machine.load(),
        groups=groups,
        processor_s=watch.processor_s(),
        picks=watch.picks,
        most_pipes=config.most_pipes,
    )


class _Watch:
    """Makes the contenders, and keeps the clocks that were on them."""

    def __init__(self, config: ScalingConfig) -> None:
        self._config = config
        self._clocks: dict[str, dict[str, BothClocks]] = {}
        self._steps: dict[str, int] = {}
        self.picks: dict[str, str] = {}

    def groups(self) -> Iterator[tuple[str, list[Make]]]:
        for kind, maker in KINDS.items():
            for size in self._config.sizes:
                group = f"{kind} {size}"
                self._clocks[group] = {}
                self._steps[group] = size
                ours = maker is Cage2Env
                self.picks[group] = (
                    "native" if ours else auto_backend.choose_backend([maker] * size)
                )
                made = _contenders(maker, size, self._config.most_pipes)
                yield group, [partial(self._watched, group, name, make) for name, make in made]

    def processor_s(self) -> dict[str, dict[str, float]]:
        """Of one step of one environment, without the turns of the warm-up."""
        turns = self._config.pace.repetitions
        return {
            group: {
                name: max(median(clock.processor_s[-turns:]), 1e-9) / self._steps[group]
                for name, clock in clocks.items()
            }
            for group, clocks in self._clocks.items()
        }

    def _watched(self, group: str, name: str, make: Make, stack: ExitStack) -> Contender:
        contender = make(stack)
        clock = self._clocks[group][name] = BothClocks(contender.clock)
        return replace(contender, name=name, clock=clock)


def _contenders(maker: EnvFn, size: int, most_pipes: int) -> Iterator[tuple[str, Make]]:
    makers = [maker] * size
    kinds = 1
    if maker is Cage2Env:
        kinds = _core.ACTION_COUNT
        yield "native", Native(games=size)
    yield "sync", Gymnasium(backend="sync", makers=makers, actions=kinds)
    processes = min(size, usable_cores())
    yield "workers", Ours(name="workers", makers=makers, workers=processes, actions=kinds)
    if size <= most_pipes:
        yield "pipes", Gymnasium(backend="pipes", makers=makers, actions=kinds)


def _microseconds(fixed_s: float, each_s: float) -> dict[str, float]:
    return {"fixed": round(1e6 * fixed_s, 2), "each": round(1e6 * each_s, 2)}

"""How fast real CybORG is in worker processes, beside a loop in one process."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from statistics import median

from cagepool import _core
from cagepool.bench import machine
from cagepool.bench.measure import Pace
from cagepool.bench.result import Result
from cagepool.bench.vectors import Gymnasium, Ours
from cagepool.bench.workers import Make, compared
from cagepool.envs.cyborg import CybORGEnv
from cagepool.envs.makers import Maker

LOOP = "Gymnasium, sync"


@dataclass(frozen=True, kw_only=True)
class CyborgConfig:
    """What to measure."""

    pace: Pace = field(default_factory=lambda: Pace(repetitions=7, seconds=1.0))
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
        makers: list[Maker] = [CybORGEnv] * size
        ours = partial(
            Ours, makers=makers, workers=config.workers, min_ready=1, actions=_core.ACTION_COUNT
        )
        yield (
            f"CybORG {size}",
            [
                Gymnasium(backend="sync", makers=makers, actions=_core.ACTION_COUNT),
                ours(name="ours, barrier", min_ready=0),
                ours(name="ours, free"),
                ours(name="ours, free, true state", true_state="every"),
            ],
        )

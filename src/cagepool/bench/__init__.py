"""Registry of the benches of `cagepool bench`.

To add a bench, write a module with a function that returns `Figures`, and add an entry to `BENCHES`
and its name to `BenchName`. Benches import their libraries when they run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Literal, Protocol, TypeAlias

from cagepool import _optional
from cagepool.bench.measure import Figures, Pace, Progress
from cagepool.bench.schema import BenchResult

QUICK = Pace(repetitions=7, seconds=0.02)
QUICKEST = Pace(repetitions=7, seconds=0.01)  # for benches with many contenders
JAX = {"jax": _optional.remedy("jax", "jax")}
TORCH = {"torch": _optional.remedy("train", "torch")}
BenchName: TypeAlias = Literal["engine", "workers", "scaling", "stragglers", "train", "jax"]


class MeasureFunction(Protocol):
    """Runs a bench."""

    def __call__(self, progress: Progress, *, quick: bool) -> Figures:
        """Measure; `quick` means seconds instead of minutes, and less precise."""


@dataclass(frozen=True)
class Bench:
    """One entry of the registry."""

    summary: str
    measure: MeasureFunction
    libraries: Mapping[str, str] = field(default_factory=dict)
    """Required libraries, and how to install them."""

    def missing_library(self) -> str | None:
        """Return what is missing to run the bench, as the end of a sentence."""
        for name, remedy in self.libraries.items():
            if find_spec(name) is None:
                return f"needs {name}: {remedy}"
        return None


def run_bench(name: str, bench: Bench, progress: Progress, *, quick: bool = False) -> BenchResult:
    """Run a bench, and record the machine and its load by other processes."""
    from cagepool.bench import system_load  # noqa: PLC0415 - needs psutil

    machine = system_load.describe_machine()
    monitor = system_load.LoadMonitor()
    figures = bench.measure(progress, quick=quick)
    load = monitor.other_load()
    return BenchResult(
        bench=name,
        machine=machine,
        load_after=system_load.load_average(),
        busy_elsewhere=load and load.busy_elsewhere,
        stolen=load and load.stolen,
        facts=figures.facts,
        groups=figures.groups,
        ratios=figures.ratios,
    )


def _engine(progress: Progress, *, quick: bool) -> Figures:
    from cagepool.bench.engine import EngineConfig, measure_engine  # noqa: PLC0415

    return measure_engine(EngineConfig(pace=QUICK) if quick else EngineConfig(), progress)


def _workers(progress: Progress, *, quick: bool) -> Figures:
    from cagepool.bench.workers import WorkersConfig, measure_workers  # noqa: PLC0415

    small = WorkersConfig(pace=QUICK, sizes=(1, 20), max_ray_actors=0)
    return measure_workers(small if quick else WorkersConfig(), progress)


def _stragglers(progress: Progress, *, quick: bool) -> Figures:
    from cagepool.bench.workers import StragglersConfig, measure_stragglers  # noqa: PLC0415

    small = StragglersConfig(pace=QUICKEST, waiting_envs=2, computing_envs=4)
    return measure_stragglers(small if quick else StragglersConfig(), progress)


def _scaling(progress: Progress, *, quick: bool) -> Figures:
    from cagepool.bench.workers import ScalingConfig, measure_scaling  # noqa: PLC0415

    small = ScalingConfig(
        pace=QUICKEST, sizes=(1, 2, 20), max_pipes=2, busy_sizes=(20,), busy_factor=1
    )
    return measure_scaling(small if quick else ScalingConfig(), progress)


def _train(progress: Progress, *, quick: bool) -> Figures:
    from cagepool.bench.train import TrainBenchConfig, measure_training  # noqa: PLC0415

    small = TrainBenchConfig(pace=QUICKEST, n_envs=50, update_steps=20, sb3_minibatches=(500,))
    return measure_training(small if quick else TrainBenchConfig(), progress)


def _jax(progress: Progress, *, quick: bool) -> Figures:
    from cagepool.bench.jax import JaxConfig, measure_jax  # noqa: PLC0415

    small = JaxConfig(pace=QUICKEST, sizes=(100,))
    return measure_jax(small if quick else JaxConfig(), progress)


BENCHES: dict[BenchName, Bench] = {
    "engine": Bench("native games", _engine),
    "workers": Bench("worker processes compared with other vector environments", _workers),
    "scaling": Bench("throughput by number of environments and backend", _scaling),
    "stragglers": Bench("environments of unequal speed, barrier and asynchronous", _stragglers),
    "train": Bench("training compared with Stable-Baselines3", _train, TORCH),
    "jax": Bench("games in JAX compared with the core", _jax, JAX),
}

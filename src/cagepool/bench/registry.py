"""All benches by name; a new one is a function here, a line in `BENCHES` and a word in `Name`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

from cagepool.bench.measure import Pace
from cagepool.bench.result import Result
from cagepool.bench.system_load import Watch

Progress: TypeAlias = Callable[[str, int, int], object]
"""Is told the group under way, the turns done and the turns there are."""

QUICK = Pace(repetitions=7, seconds=0.02)
QUICKEST = Pace(repetitions=7, seconds=0.01)  # of benches with many contenders


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a person may choose for any bench."""

    quick: bool = False
    """Seconds instead of minutes, and rough."""
    other_build: Path | None = None
    """Folder with another build of cagepool."""
    cyborg_python: str | None = None
    """A Python that can import CybORG; none: this one, if it can."""
    minicage: Path | None = None
    """Folder with the package `mini_CAGE`."""


@dataclass(frozen=True)
class Entry:
    """A bench."""

    about: str
    """What it measures, in a few words."""
    measure: Callable[[Options, Progress], Result]
    """Imports what it needs itself: PyTorch takes a second to load."""
    libraries: dict[str, str]
    """What it cannot do without, and how to get it."""
    slow: bool = False
    """Whether it takes too long to start to be one of many that are done in a minute."""

    def obstacle(self) -> str | None:
        """Why it cannot run here, if it cannot."""
        missing = [name for name in self.libraries if not _is_there(name)]
        return f"needs {missing[0]}: {self.libraries[missing[0]]}" if missing else None


def _is_there(library: str) -> bool:
    if library != "CybORG":
        return find_spec(library) is not None
    # It is seldom installed, and seldom has all that it needs.
    from cagepool.cyborg import CybORGNotFoundError, locate  # noqa: PLC0415

    try:
        locate.load()
    except CybORGNotFoundError:
        return False
    return True


def _engine(options: Options, progress: Progress) -> Result:
    from cagepool.bench.engine import EngineConfig, measure_engine  # noqa: PLC0415

    config = EngineConfig(
        pace=QUICK if options.quick else Pace(),
        other_build=options.other_build,
        cyborg_python=options.cyborg_python,
        minicage=options.minicage,
    )
    return measure_engine(config, progress)


def _workers(options: Options, progress: Progress) -> Result:
    from cagepool.bench.workers import WorkersConfig, measure_workers  # noqa: PLC0415

    few = WorkersConfig(pace=QUICK, sizes=(1, 20), actors=0)
    return measure_workers(few if options.quick else WorkersConfig(), progress)


def _cyborg(options: Options, progress: Progress) -> Result:
    from cagepool.bench.cyborg import CyborgConfig, measure_cyborg  # noqa: PLC0415

    small = CyborgConfig(pace=QUICK, sizes=(4,))
    return measure_cyborg(small if options.quick else CyborgConfig(), progress)


def _train(options: Options, progress: Progress) -> Result:
    from cagepool.bench.train import BenchTrainConfig, measure_training  # noqa: PLC0415

    small = BenchTrainConfig(pace=QUICKEST, games=50, steps=20, sb3_minibatches=(500,))
    return measure_training(small if options.quick else BenchTrainConfig(), progress)


def _scaling(options: Options, progress: Progress) -> Result:
    from cagepool.bench.scaling import ScalingConfig, measure_scaling  # noqa: PLC0415

    few = ScalingConfig(pace=QUICKEST, sizes=(1, 2, 20), most_pipes=2)
    return measure_scaling(few if options.quick else ScalingConfig(), progress)


def _stragglers(options: Options, progress: Progress) -> Result:
    from cagepool.bench.stragglers import StragglersConfig, measure_stragglers  # noqa: PLC0415

    few = StragglersConfig(pace=QUICKEST, waiting=2, working=4)
    return measure_stragglers(few if options.quick else StragglersConfig(), progress)


def _true_state(options: Options, progress: Progress) -> Result:
    from cagepool.bench.true_state import TrueStateConfig, measure_true_state  # noqa: PLC0415

    few = TrueStateConfig(pace=QUICKEST, games=2, cyborgs=2, max_steps=10)
    return measure_true_state(few if options.quick else TrueStateConfig(), progress)


def _memory(options: Options, progress: Progress) -> Result:
    from cagepool.bench.memory import MemoryConfig, measure_memory  # noqa: PLC0415

    few = MemoryConfig(
        native=(1, 1000), single=(10, 100), workers=(1, 2), pipes=(1, 2), steps=100_000
    )
    return measure_memory(few if options.quick else MemoryConfig(), progress)


def _sustained(options: Options, progress: Progress) -> Result:
    from cagepool.bench.sustained import SustainedConfig, measure_sustained  # noqa: PLC0415

    slices, seconds = (5, 0.2) if options.quick else (60, 1.0)
    config = SustainedConfig(slices=slices, seconds=seconds, cyborg_python=options.cyborg_python)
    return measure_sustained(config, progress)


def _rllib(options: Options, progress: Progress) -> Result:
    from cagepool.bench.rllib import RllibConfig, measure_rllib  # noqa: PLC0415

    small = RllibConfig(pace=QUICK, games=4, steps=10, runners=(0,), process_runners=0)
    return measure_rllib(small if options.quick else RllibConfig(), progress)


def _ray(options: Options, progress: Progress) -> Result:
    from cagepool.bench.cluster import ClusterConfig, measure_cluster  # noqa: PLC0415

    small = ClusterConfig(pace=QUICKEST, games=20, steps=20, actors=(1,))
    return measure_cluster(small if options.quick else ClusterConfig(), progress)


TORCH = {"torch": "pip install 'cagepool[train]'"}
CYBORG = {"CybORG": "see docs/cyborg.md"}
RAY = {**TORCH, "ray": "pip install 'cagepool[ray]'"}

Name: TypeAlias = Literal[
    "engine",
    "workers",
    "scaling",
    "stragglers",
    "true-state",
    "memory",
    "sustained",
    "cyborg",
    "train",
    "rllib",
    "ray",
]
BENCHES: dict[Name, Entry] = {
    "engine": Entry("the native games", _engine, {}),
    "workers": Entry("worker processes", _workers, {}),
    "scaling": Entry("rates by number of environments", _scaling, {}),
    "stragglers": Entry("environments that differ in speed", _stragglers, {}),
    "true-state": Entry("knowing the true state", _true_state, {}),
    "memory": Entry("bytes of games and of workers", _memory, {}),
    "sustained": Entry("episodes a second for a minute", _sustained, {}),
    "cyborg": Entry("CybORG in worker processes", _cyborg, CYBORG),
    "train": Entry("whole training", _train, TORCH),
    "rllib": Entry("RLlib on pools and on processes", _rllib, RAY, slow=True),
    "ray": Entry("training with actors of Ray", _ray, RAY, slow=True),
}


def run(name: Name, options: Options, progress: Progress) -> Result:
    """Measure, and see how busy others keep the machine meanwhile."""
    watch = Watch()
    result = BENCHES[name].measure(options, progress)
    return replace(result, bench=name, busy=watch.busy())

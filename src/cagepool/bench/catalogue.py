"""All benches by name; a new one is a function here, a line in `BENCHES` and a word in `Name`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

from cagepool.bench.measure import Pace
from cagepool.bench.neighbours import Watch
from cagepool.bench.result import Result

Progress: TypeAlias = Callable[[str, int, int], object]
"""Is told the group under way, the turns done and the turns there are."""

QUICK = Pace(repetitions=7, seconds=0.02)


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

    def obstacle(self) -> str | None:
        """Why it cannot run here, if it cannot."""
        missing = [name for name in self.libraries if find_spec(name) is None]
        return f"needs {missing[0]}: {self.libraries[missing[0]]}" if missing else None


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

    few = WorkersConfig(pace=QUICK, sizes=(1, 20), waiting=10)
    return measure_workers(few if options.quick else WorkersConfig(), progress)


def _cyborg(options: Options, progress: Progress) -> Result:
    from cagepool.bench.cyborg import CyborgConfig, measure_cyborg  # noqa: PLC0415

    small = CyborgConfig(pace=QUICK, sizes=(4,))
    return measure_cyborg(small if options.quick else CyborgConfig(), progress)


def _train(options: Options, progress: Progress) -> Result:
    from cagepool.bench.train import BenchTrainConfig, measure_training  # noqa: PLC0415

    small = BenchTrainConfig(pace=QUICK, sb3_minibatches=(2500,))
    return measure_training(small if options.quick else BenchTrainConfig(), progress)


TORCH = {"torch": "pip install 'cagepool[train]'"}
CYBORG = {"CybORG": "see docs/cyborg.md"}

Name: TypeAlias = Literal["engine", "workers", "cyborg", "train"]
BENCHES: dict[Name, Entry] = {
    "engine": Entry("the native games", _engine, {}),
    "workers": Entry("worker processes", _workers, {}),
    "cyborg": Entry("CybORG in worker processes", _cyborg, CYBORG),
    "train": Entry("whole training", _train, TORCH),
}


def run(name: Name, options: Options, progress: Progress) -> Result:
    """Measure, and see how busy others keep the machine meanwhile."""
    watch = Watch()
    result = BENCHES[name].measure(options, progress)
    return replace(result, bench=name, busy=watch.busy())

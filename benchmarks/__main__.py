"""Run the benches that are not part of the package: python -m benchmarks [NAME...].

Results are written to benchmarks/results; a bench whose libraries are missing is left out.
"""

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

from cagepool.bench import QUICK, QUICKEST, Bench, run_bench
from cagepool.bench.measure import Figures, Pace, Progress
from cagepool.bench.schema import write_result

RESULTS = Path(__file__).parent / "results"


class Options(argparse.Namespace):
    """Command line."""

    names: list[str]
    quick: bool
    out: Path
    other_build: Path | None
    cyborg_python: str | None
    minicage: Path | None


def benches(options: Options) -> dict[str, Bench]:
    """Return all suites by name; each imports its libraries when it runs."""

    def engine_peers(progress: Progress, *, quick: bool) -> Figures:
        from benchmarks.suites.engine_peers import EnginePeersConfig, measure_engine_peers

        config = EnginePeersConfig(
            pace=QUICK if quick else Pace(),
            other_build=options.other_build,
            cyborg_python=options.cyborg_python,
            minicage=options.minicage,
        )
        return measure_engine_peers(config, progress)

    def sustained(progress: Progress, *, quick: bool) -> Figures:
        from benchmarks.suites.sustained import SustainedConfig, measure_sustained

        repetitions, seconds = (5, 0.2) if quick else (60, 1.0)
        config = SustainedConfig(
            repetitions=repetitions, seconds=seconds, cyborg_python=options.cyborg_python
        )
        return measure_sustained(config, progress)

    def train_peers(progress: Progress, *, quick: bool) -> Figures:
        from benchmarks.suites.train_peers import TrainPeersConfig, measure_train_peers

        pace = QUICKEST if quick else Pace(repetitions=9, seconds=0.5)
        config = TrainPeersConfig(other_build=options.other_build, pace=pace)
        return measure_train_peers(config, progress)

    return {
        "engine_peers": Bench("engine compared with other engines", engine_peers),
        "train_peers": Bench("trainer compared with that of another build", train_peers),
        "true_state": Bench("cost of reading the true state", _true_state),
        "scenario_cost": Bench("cost of a step by scenario", _scenario_cost),
        "memory": Bench("memory of games and workers", _memory),
        "scenario_files": Bench("reading and generating scenarios", _scenario_files),
        "sustained": Bench("episodes per second for a minute", sustained),
        "cyborg": Bench("CybORG in worker processes", _cyborg, {"CybORG": "see docs/cyborg.md"}),
        "rllib": Bench("RLlib on native pools", _rllib, {"ray": "pip install 'cagepool[ray]'"}),
        "ray": Bench("training with Ray actors", _ray, {"ray": "pip install 'cagepool[ray]'"}),
        "datasets": Bench(
            "recording of datasets compared with Minari",
            _datasets,
            {"minari": "pip install 'cagepool[minari]'", "jax": "pip install 'minari[create]'"},
        ),
        "jax_training": Bench(
            "training in JAX, several seeds against one",
            _jax_training,
            {"jax": "pip install 'cagepool[jax]'"},
        ),
    }


def _true_state(progress: Progress, *, quick: bool) -> Figures:
    from benchmarks.suites.true_state import TrueStateConfig, measure_true_state

    small = TrueStateConfig(pace=QUICKEST, games=2, cyborg_envs=2, max_steps=10)
    return measure_true_state(small if quick else TrueStateConfig(), progress)


def _scenario_cost(progress: Progress, *, quick: bool) -> Figures:
    from benchmarks.suites.scenario_cost import ScenarioCostConfig, measure_scenario_cost

    small = ScenarioCostConfig(pace=QUICKEST)
    return measure_scenario_cost(small if quick else ScenarioCostConfig(), progress)


def _memory(progress: Progress, *, quick: bool) -> Figures:
    from benchmarks.suites.memory import MemoryConfig, measure_memory

    small = MemoryConfig(
        native=(1, 1000), single=(10, 100), workers=(1, 2), pipes=(1, 2), steps=100_000
    )
    return measure_memory(small if quick else MemoryConfig(), progress)


def _scenario_files(progress: Progress, *, quick: bool) -> Figures:
    from benchmarks.suites.scenario_files import ScenarioFilesConfig, measure_scenario_files

    small = ScenarioFilesConfig(pace=QUICKEST)
    return measure_scenario_files(small if quick else ScenarioFilesConfig(), progress)


def _cyborg(progress: Progress, *, quick: bool) -> Figures:
    from benchmarks.suites.cyborg_workers import CyborgConfig, measure_cyborg

    small = CyborgConfig(pace=QUICK, sizes=(4,))
    return measure_cyborg(small if quick else CyborgConfig(), progress)


def _rllib(progress: Progress, *, quick: bool) -> Figures:
    from benchmarks.suites.rllib_training import RllibConfig, measure_rllib

    small = RllibConfig(pace=QUICK, games=4, steps=10, runners=(0,), process_runners=0)
    return measure_rllib(small if quick else RllibConfig(), progress)


def _ray(progress: Progress, *, quick: bool) -> Figures:
    from benchmarks.suites.ray_training import RayConfig, measure_ray

    small = RayConfig(pace=QUICKEST, n_envs=20, update_steps=20, actors=(1,))
    return measure_ray(small if quick else RayConfig(), progress)


def _datasets(progress: Progress, *, quick: bool) -> Figures:
    from benchmarks.suites.datasets import DatasetsConfig, measure_datasets

    small = DatasetsConfig(pace=QUICKEST, episodes=5, collector_episodes=1)
    return measure_datasets(small if quick else DatasetsConfig(), progress)


def _jax_training(progress: Progress, *, quick: bool) -> Figures:
    from benchmarks.suites.jax_training import JaxTrainingConfig, measure_jax_training

    small = JaxTrainingConfig(repetitions=2, seeds=(1, 2), updates=1, n_envs=8, n_steps=10)
    return measure_jax_training(small if quick else JaxTrainingConfig(), progress)


def parse(arguments: list[str] | None = None) -> Options:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="suites to run; none: all")
    parser.add_argument("--quick", action="store_true", help="seconds per suite, imprecise")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the JSON files")
    parser.add_argument("--other-build", type=Path, help="folder with another build of cagepool")
    parser.add_argument("--cyborg-python", help="a Python that can import CybORG")
    parser.add_argument("--minicage", type=Path, help="folder with the package mini_CAGE")
    return parser.parse_args(arguments, Options())


def main(options: Options) -> None:
    """Run the suites and write their results."""
    known = benches(options)
    for name in options.names:
        if name not in known:
            sys.exit(f"names must be among {', '.join(known)}, got {name}")
    options.out.mkdir(parents=True, exist_ok=True)  # before hours of measuring
    for name in options.names or known:
        if missing := _missing_library(name, known[name]):
            print(f"{name} is left out: it {missing}")
            continue
        result = run_bench(name, known[name], _print_group, quick=options.quick)
        if not result.ratios:
            print(f"{name} is left out: nothing to compare with was given")
            continue
        write_result(result, options.out / f"{name}.json")
        for ratio, value in result.ratios.items():
            print(f"{value:12,.3f}  {ratio}")


def _missing_library(name: str, bench: Bench) -> str | None:
    """Return what is missing; CybORG is usually a source tree, not an installed package."""
    if name != "cyborg" or find_spec("CybORG"):
        return bench.missing_library()
    from cagepool.cyborg import CybORGNotFoundError, locate

    try:
        locate.load()
    except CybORGNotFoundError:
        return bench.missing_library()
    return None


def _print_group(group: str, finished: int, total: int) -> None:
    if finished == total:
        print(f"{group}: {total} repetitions", flush=True)


if __name__ == "__main__":
    main(parse())

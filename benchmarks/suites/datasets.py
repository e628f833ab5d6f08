"""Recording of a dataset: `cagepool record` compared with the DataCollector of Minari."""

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import minari

from cagepool.bench.measure import (
    Contender,
    Figures,
    MakeContender,
    Pace,
    Progress,
    measure_groups,
    time_calls,
)
from cagepool.bench.schema import Measurement
from cagepool.envs import Cage2Env
from cagepool.policy.load import load
from cagepool.share.dataset import RecordOptions, record_dataset

POLICY, RED, EPISODE_STEPS = "zoo:best-2.1", "B_lineAgent", 100
RECORD, COLLECTOR = "cagepool record", "Minari's DataCollector, without infos"


@dataclass(frozen=True, kw_only=True)
class DatasetsConfig:
    """Settings of this bench."""

    pace: Pace = field(default_factory=lambda: Pace(repetitions=7, seconds=1.0))
    episodes: int = 1000
    """Episodes per dataset of `cagepool record`."""
    collector_episodes: int = 5
    """Episodes per dataset of the DataCollector."""


def measure_datasets(config: DatasetsConfig, progress: Progress) -> Figures:
    """Measure both, each from playing to the finished dataset; the DataCollector has no infos."""
    groups = measure_groups([("datasets", list(_contenders(config)))], config.pace, progress)
    rates = {measured.name: _episodes_per_second(measured) for measured in groups["datasets"]}
    ratios = {f"episodes per second, {name}": round(rate, 1) for name, rate in rates.items()}
    ratios[f"{RECORD} / {COLLECTOR}"] = round(rates[RECORD] / rates[COLLECTOR], 1)
    return Figures(
        groups=groups,
        ratios=ratios,
        facts={"policy": POLICY, "minari": minari.__version__, "episodes": config.episodes},
    )


def _episodes_per_second(measured: Measurement) -> float:
    costs = sorted(measured.repetitions.nanoseconds_per_step)
    return 1e9 / costs[len(costs) // 2] / EPISODE_STEPS


def _contenders(config: DatasetsConfig) -> Iterator[MakeContender]:
    makers: dict[str, tuple[Callable[[Path, int], Callable[[], object]], int]] = {
        RECORD: (_recorder, config.episodes),
        COLLECTOR: (_collector, config.collector_episodes),
    }
    for name, (make, episodes) in makers.items():

        def contender(
            stack: ExitStack,
            name: str = name,
            make: Callable[..., Any] = make,
            episodes: int = episodes,
        ) -> Contender:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            return Contender(
                name=name,
                settings={"red": RED, "max_steps": EPISODE_STEPS},
                steps_per_call=episodes * EPISODE_STEPS,
                timer=time_calls(make(folder, episodes)),
            )

        yield contender


def _recorder(folder: Path, episodes: int) -> Callable[[], object]:
    policy, numbers = load(POLICY), count()
    options = RecordOptions(episodes=episodes, red=RED, max_steps=EPISODE_STEPS)
    return lambda: record_dataset(policy, folder / f"bench-v{next(numbers)}", options)


def _collector(folder: Path, episodes: int) -> Callable[[], object]:
    """Plays single games through Minari's wrapper, as its documentation shows."""
    os.environ["MINARI_DATASETS_PATH"] = str(folder)
    policy, numbers = load(POLICY), count()

    def collect() -> None:
        env = minari.DataCollector(Cage2Env(red=RED, max_steps=EPISODE_STEPS))
        for episode in range(episodes):
            observation, _ = env.reset(seed=episode)
            policy.begin(1)
            done = False
            while not done:
                observation, _, _, done, _ = env.step(int(policy.act(observation)[0]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about metadata that a benchmark does not have
            env.create_dataset(f"bench-v{next(numbers)}")
        env.close()

    return collect

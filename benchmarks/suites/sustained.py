"""Sustained throughput: episodes per second of 100 native games for one minute, with compliance."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.suites.subprocess_timer import has_cyborg, time_cyborg
from cagepool.bench.measure import (
    Contender,
    Figures,
    MakeContender,
    Pace,
    Progress,
    measure_groups,
    random_actions,
)
from cagepool.bench.schema import Measurement
from cagepool.envs import make_vec

RED, ORDER = "B_lineAgent", "critical_first"
EPISODE_STEPS = 100
TARGET = 173  # episodes per second of 100 environments
NATIVE, CYBORG = "native", "CybORG, one process"


@dataclass(frozen=True, kw_only=True)
class SustainedConfig:
    """Settings of this bench."""

    games: int = 100
    repetitions: int = 60
    seconds: float = 1.0
    """Duration of one repetition."""
    cyborg_python: str | None = None
    """Python that can import CybORG; None: this one, if it can."""


def measure_sustained(config: SustainedConfig, progress: Progress) -> Figures:
    """Measure native games interleaved with CybORG, which has no compliance.

    Raises:
        ValueError: `cyborg_python` cannot import CybORG.
    """
    timer = EpisodeTimer(config.games)
    pace = Pace(repetitions=config.repetitions, seconds=config.seconds)
    groups = [("episodes", list(_contenders(config, timer)))]
    measured = measure_groups(groups, pace, progress)
    return Figures(
        groups=measured,
        ratios=episode_figures(measured["episodes"], timer.episodes / timer.seconds),
        facts={"episodes": timer.episodes, "seconds": round(timer.seconds, 3)},
    )


def episode_figures(group: Sequence[Measurement], rate: float) -> dict[str, float]:
    """Episodes per second, from those of the native games and the measurements."""
    native, *peers = group
    slowest = 1e9 / max(_costs(native)) / EPISODE_STEPS
    figures = {
        "episodes per second, native": rate,
        "episodes per second in the slowest repetition, native": slowest,
        f"native / target of {TARGET} episodes per second": rate / TARGET,
    }
    for peer in peers:
        costs = _costs(peer)
        peer_rate = 1e9 * len(costs) / sum(costs) / EPISODE_STEPS
        figures[f"episodes per second, {peer.name}"] = peer_rate
        figures[f"native / {peer.name}"] = rate / peer_rate
    return {name: round(value, 3) for name, value in figures.items()}


def _costs(measurement: Measurement) -> list[float]:
    return measurement.repetitions.nanoseconds_per_step


class EpisodeTimer:
    """Timer of native games that counts finished episodes, the warm-up included."""

    def __init__(self, games: int) -> None:
        """Create the games, which reset themselves in the step that ends an episode."""
        self._envs = make_vec(games, red=RED, order=ORDER, autoreset="same_step")
        self._envs.reset(seed=0)
        self._actions = list(random_actions(games))
        self.episodes = 0
        self.seconds = 0.0

    def __call__(self, calls: int, /) -> float:
        """Return the seconds of `calls` steps of all games."""
        step, actions, episodes = self._envs.step, self._actions, 0
        start = time.perf_counter()
        for number in range(calls):
            truncations = step(actions[number % len(actions)])[3]
            episodes += int(np.count_nonzero(truncations))
        elapsed = time.perf_counter() - start
        self.episodes += episodes
        self.seconds += elapsed
        return elapsed


def _contenders(config: SustainedConfig, timer: EpisodeTimer) -> Iterator[MakeContender]:
    contender = partial(Contender, settings={"red": RED, "max_steps": EPISODE_STEPS})
    native = contender(name=NATIVE, steps_per_call=config.games, timer=timer)
    yield lambda _: native
    if config.cyborg_python is None and not has_cyborg(sys.executable):
        return
    process = time_cyborg(config.cyborg_python or sys.executable, RED)

    def cyborg(stack: ExitStack) -> Contender:
        return contender(name=CYBORG, steps_per_call=1, timer=stack.enter_context(process))

    yield cyborg

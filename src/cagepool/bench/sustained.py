"""How many episodes a second 100 native games keep up for a minute, compliance included."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np

from cagepool.bench import machine, subprocess_timer
from cagepool.bench.contenders import random_actions
from cagepool.bench.measure import Contender, Pace, compare
from cagepool.bench.result import Result
from cagepool.envs import make_vec

RED, ORDER = "B_lineAgent", "critical_first"
EPISODE = 100  # steps
HOPED_FOR = 173  # episodes a second with 100 environments, which users once hoped for
NATIVE, ORIGINAL = "native", "CybORG, one process"


@dataclass(frozen=True, kw_only=True)
class SustainedConfig:
    """What to measure."""

    games: int = 100
    slices: int = 60
    """Turns of each contender."""
    seconds: float = 1.0
    """Length of a turn."""
    cyborg_python: str | None = None
    """A Python that can import CybORG; none: this one, if it can."""


@dataclass(frozen=True, kw_only=True)
class SustainedResult(Result):
    """Native games with compliance, and CybORG without, in turns."""

    episodes: int
    """That the native games have ended, the warm-up included."""
    seconds: float
    """In which they did so."""

    @property
    def ratios(self) -> dict[str, float]:
        """The figures that claims are made of."""
        native, *others = self.groups["episodes"]
        rate = self.episodes / self.seconds
        slowest = 1e9 / max(native.nanoseconds) / EPISODE
        figures = {
            "episodes a second, native": rate,
            "episodes a second in the slowest slice, native": slowest,
            f"native / the {HOPED_FOR} hoped for": rate / HOPED_FOR,
        }
        for other in others:
            theirs = 1e9 * len(other.nanoseconds) / sum(other.nanoseconds) / EPISODE
            figures[f"episodes a second, {other.name}"] = theirs
            figures[f"native / {other.name}"] = rate / theirs
        return {name: round(value, 3) for name, value in figures.items()}

    def facts(self) -> dict[str, object]:
        """What else belongs into the JSON."""
        return {"episodes": self.episodes, "seconds": round(self.seconds, 3)}


def measure_sustained(
    config: SustainedConfig, progress: Callable[[str, int, int], object]
) -> SustainedResult:
    """Measure slice after slice; `progress` is told the slices done and in all.

    Raises:
        ValueError: there is no CybORG in its Python.
    """
    before = machine.describe()
    playing = Playing(config.games)
    with ExitStack() as stack:
        contenders = list(_contenders(config, playing, stack))
        turns = config.slices * len(contenders)
        done = count(1)
        measured = compare(
            contenders,
            Pace(repetitions=config.slices, seconds=config.seconds),
            lambda: progress("episodes", next(done), turns),
        )
    return SustainedResult(
        machine=before,
        load_after=machine.load(),
        groups={"episodes": measured},
        episodes=playing.episodes,
        seconds=playing.seconds,
    )


class Playing:
    """A clock of native games that counts the episodes that have ended."""

    def __init__(self, games: int) -> None:
        """Make the games; one that ends begins anew in the same step."""
        self._envs = make_vec(games, red=RED, order=ORDER, autoreset="same_step")
        self._envs.reset(seed=0)
        self._actions = list(random_actions(games))
        self.episodes = 0
        self.seconds = 0.0

    def __call__(self, calls: int, /) -> float:
        """Seconds that so many steps of all games took."""
        step, actions, ended = self._envs.step, self._actions, 0
        began_s = time.perf_counter()
        for turn in range(calls):
            ended += int(np.count_nonzero(step(actions[turn % len(actions)])[3]))
        elapsed_s = time.perf_counter() - began_s
        self.episodes += ended
        self.seconds += elapsed_s
        return elapsed_s


def _contenders(config: SustainedConfig, playing: Playing, stack: ExitStack) -> Iterator[Contender]:
    contender = partial(Contender, settings={"red": RED, "max_steps": EPISODE})
    yield contender(name=NATIVE, steps=config.games, clock=playing)
    if config.cyborg_python is not None or subprocess_timer.has_cyborg(sys.executable):
        original = subprocess_timer.cyborg(config.cyborg_python or sys.executable, RED)
        yield contender(name=ORIGINAL, steps=1, clock=stack.enter_context(original))

"""Play the games of a trial: settings, seeds, engines, and the loop over steps."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from cagepool.errors import check_at_least
from cagepool.policy.defenders import Defender, GameBatch
from cagepool.scenarios import CAGE2, Layout, Scenario, resolve_scenarios
from cagepool.sim import Batch, BatchConfig
from cagepool.sim.names import red_bitmask
from cagepool.sim.settings import SharedSettings
from cagepool.types import Float64s, Seeds

OFFICIAL_LENGTHS = (30, 50, 100)
MAX_EPISODES = 10_000_000
GAMES_AT_ONCE = 10_000


def load_scenarios(names: str) -> tuple[Scenario, ...]:
    """Scenarios of files, folders and suites, joined by commas."""
    return resolve_scenarios([name.strip() for name in names.split(",")])


OnProgress: TypeAlias = Callable[[float], None]
"""Called repeatedly with the number of games, or parts of games, played since the last call."""


def ignore_progress(_games: float) -> None:
    """Do nothing: the `OnProgress` of callers that show no progress."""


@dataclass(frozen=True, kw_only=True)
class Trial(SharedSettings):
    """Settings of the games that a defender is scored on, against reds that are named apart.

    Game i plays scenario i modulo their number. Scores of different editions must not be compared.
    """

    episodes: int = 1000
    """Games per scenario and red."""
    seed: int = 0
    """Random seed; the games of a short trial are the first games of a longer one."""

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        if not 2 <= self.episodes <= MAX_EPISODES:
            limits = f"from 2, which a standard error needs, to {MAX_EPISODES}"
            raise ValueError(f"episodes must be {limits}, got {self.episodes}")
        check_at_least("seed", self.seed, 0)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Steps after which totals are read: official lengths below `max_steps`, and `max_steps`.

        All lengths are read off the same games, because no agent knows when a game ends.
        """
        return (*(length for length in OFFICIAL_LENGTHS if length < self.max_steps), self.max_steps)


StartGames: TypeAlias = Callable[[Seeds], GameBatch]
"""Starts one game per seed."""


class Engine(Protocol):
    """An implementation of the game."""

    @property
    def name(self) -> str:
        """Name on the command line."""

    @property
    def max_games(self) -> int:
        """Number of games that can be played at once."""

    def open(self, trial: Trial, red: str, /) -> AbstractContextManager[StartGames]:
        """Prepare for the games of a trial against one red."""


class NativeEngine:
    """The C++ core in this process."""

    name = "native"
    max_games = GAMES_AT_ONCE

    @contextmanager
    def open(self, trial: Trial, red: str) -> Iterator[StartGames]:
        """Yield a function that starts native games."""
        yield lambda seeds: start_games(trial, red, seeds)


def game_seeds(trial: Trial, red: str, scenario: Scenario = CAGE2) -> Seeds:
    """Seeds of one scenario's games against one red; each red and scenario has its own stream.

    With shared seeds, red's draws would agree between scenarios, and so would the errors of means.
    """
    stream = () if scenario == CAGE2 else (int(scenario.hash[:8], 16),)
    sequence = np.random.SeedSequence(trial.seed, spawn_key=(red_bitmask(red), *stream))
    return np.random.PCG64(sequence).random_raw(trial.episodes)


def spread_evenly(scenarios: tuple[Scenario, ...], count: int) -> tuple[Scenario, ...]:
    """At most `count` of the scenarios, evenly spread over all of them."""
    if len(scenarios) <= count:
        return scenarios
    return tuple(scenarios[number * len(scenarios) // count] for number in range(count))


def start_games(trial: Trial, red: str, seeds: Seeds) -> Batch:
    """Start one native game per seed."""
    layout = None if trial.layout == Layout.of(trial.scenarios) else trial.layout
    config = BatchConfig.of(trial, red=red, layout=layout, autoreset="disabled")
    batch = Batch(len(seeds), config)
    batch.reset(seeds)
    return batch


def play_steps(
    defender: Defender, trial: Trial, batch: GameBatch
) -> Iterator[tuple[int, Float64s]]:
    """Play games from the first step to the last.

    Yields:
        After each step its number, from 1, and the total rewards so far, (games,).
    """
    defender.begin(batch)
    totals = np.zeros(batch.games)
    for step in range(1, trial.max_steps + 1):
        batch.step(defender.act(batch.observations))
        totals += batch.rewards
        yield step, np.round(totals, 1)  # rewards are whole tenths: no rounding error adds up


def episode_totals(
    defender: Defender, trial: Trial, red: str, on_progress: OnProgress = ignore_progress
) -> Float64s:
    """Play `trial.episodes` games against one red, over all scenarios; (episode, length)."""
    totals = np.empty((trial.episodes, len(trial.lengths)))
    seeds = game_seeds(trial, red)
    for first in range(0, trial.episodes, GAMES_AT_ONCE):
        games = slice(first, first + GAMES_AT_ONCE)
        steps = play_steps(defender, trial, start_games(trial, red, seeds[games]))
        at_lengths = [so_far for step, so_far in steps if step in trial.lengths]
        totals[games] = np.stack(at_lengths, axis=1)
        on_progress(len(seeds[games]))
    return totals

"""Play the games of a trial: settings, seeds, engines, and the loop over steps."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np

from cagepool import _core
from cagepool.evaluate.defenders import Defender, GameBatch
from cagepool.scenarios import Layout, Scenario, resolve_scenarios
from cagepool.sim import Batch, BatchConfig, orders
from cagepool.sim.names import edition_code, red_bitmask
from cagepool.types import Float64s, Seeds

OFFICIAL_LENGTHS = (30, 50, 100)
MAX_EPISODES = 10_000_000
GAMES_AT_ONCE = 10_000


def load_scenarios(names: str) -> tuple[Scenario, ...]:
    """Scenarios of files, folders and suites, joined by commas.

    Raises:
        ValueError: one of them does not exist or cannot be played.
    """
    return resolve_scenarios([name.strip() for name in names.split(",")])


OnProgress: TypeAlias = Callable[[float], None]
"""Called repeatedly with the number of games, or parts of games, played since the last call."""


def ignore_progress(_games: float) -> None:
    """Do nothing: the `OnProgress` of callers that show no progress."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Settings of the games that a defender is scored on."""

    episodes: int = 1000
    """Games per red."""
    max_steps: int = OFFICIAL_LENGTHS[-1]
    """Steps per game."""
    edition: str = "2.1"
    """Edition of the game; scores of different editions must not be compared."""
    green: bool = False
    """Whether GreenAgent scans hosts."""
    seed: int = 0
    """Random seed; the games of a short trial are the first games of a longer one."""
    scenarios: tuple[Scenario, ...] = ()
    """Networks; game i plays network i modulo their number. None: the built-in one."""
    layout: Layout | None = None
    """Host slots and actions that the defender needs; none: those of the scenarios."""
    order: str | None = None
    """Workflow order with which compliance is measured; none: not measured."""
    knowledge: Literal["true", "observed"] = "true"
    """Whether threatened hosts are found by red's true access or by blue's table."""
    definition: Literal["host", "seed"] = "host"
    """Compliance as specified, or by the older definition."""

    def __post_init__(self) -> None:
        """Check the settings."""
        edition_code(self.edition)
        if self.order is not None:
            orders.parse_order(self.order)
        if not 2 <= self.episodes <= MAX_EPISODES:
            limits = f"from 2, which a standard error needs, to {MAX_EPISODES}"
            raise ValueError(f"episodes must be {limits}, got {self.episodes}")
        if not 1 <= self.max_steps <= _core.MAX_STEPS:
            raise ValueError(f"max_steps must be from 1 to {_core.MAX_STEPS}, got {self.max_steps}")
        if self.seed < 0:
            raise ValueError(f"seed must be at least 0, got {self.seed}")

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


def game_seeds(trial: Trial, red: str) -> Seeds:
    """Seeds of the games against one red; each red has other seeds."""
    sequence = np.random.SeedSequence(trial.seed, spawn_key=(red_bitmask(red),))
    return np.random.PCG64(sequence).random_raw(trial.episodes)


def start_games(trial: Trial, red: str, seeds: Seeds) -> Batch:
    """Start one native game per seed."""
    config = BatchConfig(
        red=red,
        edition=trial.edition,
        green=trial.green,
        max_steps=trial.max_steps,
        order=trial.order,
        knowledge=trial.knowledge,
        definition=trial.definition,
        scenario=trial.scenarios or None,
        layout=trial.layout if trial.scenarios else None,
        autoreset="disabled",
    )
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
        batch.step(defender.act(batch))
        totals += batch.rewards
        yield step, np.round(totals, 1)  # rewards are whole tenths: no rounding error adds up


def episode_totals(
    defender: Defender, trial: Trial, red: str, on_progress: OnProgress = ignore_progress
) -> Float64s:
    """Play the games of a trial against one red; total rewards, (episode, length)."""
    totals = np.empty((trial.episodes, len(trial.lengths)))
    seeds = game_seeds(trial, red)
    for first in range(0, trial.episodes, GAMES_AT_ONCE):
        games = slice(first, first + GAMES_AT_ONCE)
        steps = play_steps(defender, trial, start_games(trial, red, seeds[games]))
        at_lengths = [so_far for step, so_far in steps if step in trial.lengths]
        totals[games] = np.stack(at_lengths, axis=1)
        on_progress(len(seeds[games]))
    return totals

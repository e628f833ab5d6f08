"""Play a defender for many episodes and score it as the challenge does: reds x lengths."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from cagepool import _core
from cagepool.evaluate.defenders import Defender
from cagepool.evaluate.games import Games
from cagepool.sim import Batch, BatchConfig, orders
from cagepool.sim.names import OFFICIAL_REDS, RED_ALIASES, edition_code, red_bitmask
from cagepool.types import Float64s, Seeds

OFFICIAL_LENGTHS = (30, 50, 100)
MAX_EPISODES = 10_000_000
GAMES_AT_ONCE = 10_000


@dataclass(frozen=True, kw_only=True)
class Trial:
    """How a defender is put to the test."""

    episodes: int = 1000
    """Games played against each red."""
    max_steps: int = OFFICIAL_LENGTHS[-1]
    """Steps of a game."""
    edition: str = "2.1"
    """The edition of the game; scores of different editions must not be compared."""
    green: bool = False
    """Whether GreenAgent scans hosts."""
    seed: int = 0
    """Decides all luck; the first games of a longer trial are those of a shorter one."""
    order: str | None = None
    """Workflow order whose keeping is measured; none: not measured."""
    knowledge: Literal["true", "observed"] = "true"
    """Whether a host is threatened by what red holds or by what blue's table says."""
    definition: Literal["host", "seed"] = "host"
    """Compliance as specified, or the older definition."""

    def __post_init__(self) -> None:
        """Check what can be checked before a game is played."""
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
        """Steps after which the total is read: the official lengths below `max_steps`, and that.

        All are read off the same games, because nobody in a game knows when it ends.
        """
        return (*(length for length in OFFICIAL_LENGTHS if length < self.max_steps), self.max_steps)


@dataclass(frozen=True)
class Score:
    """Mean total reward of some episodes."""

    mean: float
    standard_error: float
    episodes: int

    @classmethod
    def of(cls, totals: Float64s) -> "Score":
        """The score of episodes with these totals."""
        error = totals.std(ddof=1) / np.sqrt(len(totals))
        return cls(float(totals.mean()), float(error), len(totals))


@dataclass(frozen=True)
class ScoreTable:
    """What a defender scored in a trial."""

    trial: Trial
    scores: dict[str, dict[int, Score]]  # by red, then by length
    total: Score | None  # sum over the nine official cells, if all of them were played

    @classmethod
    def of(cls, trial: Trial, totals: Mapping[str, Float64s]) -> "ScoreTable":
        """The table of episodes with these totals, (episode, length), by red."""
        columns = {length: column for column, length in enumerate(trial.lengths)}
        scores = {
            red: {length: Score.of(of_red[:, column]) for length, column in columns.items()}
            for red, of_red in totals.items()
        }
        if {*OFFICIAL_REDS} - {*totals} or {*OFFICIAL_LENGTHS} - {*columns}:
            return cls(trial, scores, None)
        # Games against different reds are independent: their sums, row by row, tell the error.
        official = [columns[length] for length in OFFICIAL_LENGTHS]
        nine_cells = np.sum([totals[red][:, official].sum(axis=1) for red in OFFICIAL_REDS], axis=0)
        return cls(trial, scores, Score.of(nine_cells))

    def as_dict(self) -> dict[str, object]:
        """The table as plain values, fit for JSON."""
        cells = [
            {"red": red, "length": length, **asdict(score)}
            for red, of_red in self.scores.items()
            for length, score in of_red.items()
        ]
        total = asdict(self.total) if self.total else None
        return {**asdict(self.trial), "scores": cells, "total": total}


def score_table(
    defender: Defender,
    trial: Trial,
    red_agents: Iterable[str] = OFFICIAL_REDS,
    on_played: Callable[[int], None] = lambda _games: None,
) -> ScoreTable:
    """Play the trial against each of the reds.

    Args:
        defender: Plays blue.
        trial: What is played.
        red_agents: Class names or aliases.
        on_played: Told, now and then, how many more games are over.

    Raises:
        ValueError: a red is unknown, or there is none.
    """
    names = red_names(red_agents)
    return ScoreTable.of(
        trial, {red: episode_totals(defender, trial, red, on_played) for red in names}
    )


def red_names(red_agents: Iterable[str]) -> tuple[str, ...]:
    """Class names of red agents, each once.

    Raises:
        ValueError: a red is not one that plays by itself, or there is none.
    """
    names = tuple(dict.fromkeys(RED_ALIASES.get(red, red) for red in red_agents))
    unknown = [name for name in names if name not in OFFICIAL_REDS]
    if unknown or not names:
        known = f"one or more of {', '.join(OFFICIAL_REDS)} (or {', '.join(RED_ALIASES)})"
        raise ValueError(f"red must be {known}; got {', '.join(map(repr, unknown)) or 'none'}")
    return names


def episode_totals(
    defender: Defender,
    trial: Trial,
    red: str,
    on_played: Callable[[int], None] = lambda _games: None,
) -> Float64s:
    """Total rewards, (episode, length), of the trial's games against one red."""
    totals = np.empty((trial.episodes, len(trial.lengths)))
    seeds = game_seeds(trial, red)
    for first in range(0, trial.episodes, GAMES_AT_ONCE):
        games = slice(first, first + GAMES_AT_ONCE)
        totals[games] = _play_together(defender, trial, red, seeds[games])
        on_played(len(seeds[games]))
    return totals


def game_seeds(trial: Trial, red: str) -> Seeds:
    """Seeds of the trial's games against one red, apart from those against another."""
    sequence = np.random.SeedSequence(trial.seed, spawn_key=(red_bitmask(red),))
    return np.random.PCG64(sequence).random_raw(trial.episodes)


def opened(trial: Trial, red: str, seeds: Seeds) -> Batch:
    """A batch with one game for each seed, at the first step."""
    config = BatchConfig(
        red=red,
        edition=trial.edition,
        green=trial.green,
        max_steps=trial.max_steps,
        order=trial.order,
        knowledge=trial.knowledge,
        definition=trial.definition,
        autoreset="disabled",
    )
    batch = Batch(len(seeds), config)
    batch.reset(seeds)
    return batch


def played(defender: Defender, trial: Trial, batch: Games) -> Iterator[tuple[int, Float64s]]:
    """Play games from the first step to the last; gives, after each, its number and the totals."""
    defender.begin(batch)
    running = np.zeros(batch.games)
    for step in range(1, trial.max_steps + 1):
        batch.step(defender.act(batch))
        running += batch.rewards
        yield step, np.round(running, 1)  # rewards are whole tenths: no error adds up


def _play_together(defender: Defender, trial: Trial, red: str, seeds: Seeds) -> Float64s:
    steps = played(defender, trial, opened(trial, red, seeds))
    return np.stack([totals for step, totals in steps if step in trial.lengths], axis=1)

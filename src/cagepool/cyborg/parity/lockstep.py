"""Many episodes of CybORG, each compared with its native replay."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from cagepool import _core
from cagepool.cyborg import CybORGEnv
from cagepool.cyborg.parity.compare import Mismatch, mismatches
from cagepool.cyborg.parity.fuzz_policies import BLUES
from cagepool.cyborg.parity.recorder import Recording, record
from cagepool.cyborg.parity.twin import Twin
from cagepool.evaluate.rollout import red_names
from cagepool.sim.names import OFFICIAL_REDS, edition_code, red_bitmask

MIXED = "mixed"
AUTO = "auto"


@dataclass(frozen=True, kw_only=True)
class ParityTrial:
    """What is compared."""

    episodes: int = 10
    """Episodes for each red, with green and without."""
    max_steps: int = 100
    """Steps of an episode."""
    red: tuple[str, ...] = OFFICIAL_REDS
    """Red agents, by class name or alias."""
    greens: tuple[bool, ...] = (False, True)
    """Without green, with it, or both."""
    blue: str = MIXED
    """One of `BLUES`, or `mixed`: they take turns."""
    seed: int = 0
    """Decides all luck."""
    edition: str = AUTO
    """What CybORG must play, or `auto`: whatever it plays."""
    checkout: str | None = None
    """Folder of CybORG; see `CybORGEnv`."""

    def __post_init__(self) -> None:
        """Check what can be checked before CybORG is loaded."""
        red_names(self.red)
        if self.blue not in (MIXED, *BLUES):
            raise ValueError(f"blue must be one of {', '.join((MIXED, *BLUES))}; got {self.blue!r}")
        if self.episodes < 1:
            raise ValueError(f"episodes must be at least 1, got {self.episodes}")
        if not 1 <= self.max_steps <= _core.MAX_STEPS:
            raise ValueError(f"max_steps must be from 1 to {_core.MAX_STEPS}, got {self.max_steps}")
        if self.seed < 0:
            raise ValueError(f"seed must be at least 0, got {self.seed}")
        if self.edition != AUTO:
            edition_code(self.edition)


@dataclass(frozen=True)
class Cell:
    """Whom blue plays against."""

    red: str
    green: bool


@dataclass
class Tally:
    """What came of the episodes of a cell."""

    episodes: int = 0
    steps: int = 0
    set_aside: int = 0  # episodes in which a process id was reused; they are not compared
    faults: list[Mismatch] = field(default_factory=list)

    def add(self, recording: Recording, twin: Twin) -> None:
        """Compare one more episode."""
        if recording.reused_pid:
            self.set_aside += 1
            return
        found = mismatches(recording.trace) or list(twin.mismatches(recording))
        self.faults += [fault._replace(episode=self.played) for fault in found]
        self.episodes += 1
        self.steps += recording.trace["blue_action"].size

    @property
    def played(self) -> int:
        """Episodes so far, those set aside included."""
        return self.episodes + self.set_aside


@dataclass(frozen=True)
class ParityResult:
    """What came of a trial."""

    edition: str
    tallies: dict[Cell, Tally]

    @property
    def faults(self) -> list[tuple[Cell, Mismatch]]:
        """All mismatches."""
        return [(cell, fault) for cell, tally in self.tallies.items() for fault in tally.faults]


def cells(trial: ParityTrial) -> list[Cell]:
    """The pairs of red and green that a trial plays."""
    return [Cell(red, green) for red, green in product(red_names(trial.red), trial.greens)]


def play(
    trial: ParityTrial, on_recorded: Callable[[Recording], None] = lambda _recording: None
) -> ParityResult:
    """Play a trial, telling of each episode.

    Raises:
        CybORGNotFoundError: there is no CybORG to compare with.
        ValueError: it is of another edition.
    """
    tallies: dict[Cell, Tally] = {}
    for cell in cells(trial):
        env = _env(trial, cell)
        twin = Twin(red=cell.red, green=cell.green, edition=env.edition, max_steps=trial.max_steps)
        tallies[cell] = tally = Tally()
        for episode in range(trial.episodes):
            recording = record(env, _blue(trial, episode), _seed(trial, cell, episode))
            tally.add(recording, twin)
            on_recorded(recording)
    return ParityResult(env.edition, tallies)


def _env(trial: ParityTrial, cell: Cell) -> CybORGEnv:
    return CybORGEnv(
        red=cell.red,
        green=cell.green,
        max_steps=trial.max_steps,
        edition=None if trial.edition == AUTO else trial.edition,
        checkout=trial.checkout,
    )


def _blue(trial: ParityTrial, episode: int) -> str:
    return [*BLUES][episode % len(BLUES)] if trial.blue == MIXED else trial.blue


def _seed(trial: ParityTrial, cell: Cell, episode: int) -> int:
    key = (red_bitmask(cell.red), int(cell.green), episode)
    return int(np.random.SeedSequence(trial.seed, spawn_key=key).generate_state(1)[0])

"""Plays episodes of CybORG and compares each with the native game, step by step."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from cagepool import _core
from cagepool.cyborg import CybORGEnv
from cagepool.cyborg.dict_state import true_state_dict
from cagepool.cyborg.parity.compare import Mismatch, replay_mismatches
from cagepool.cyborg.parity.fuzz_policies import FUZZ_POLICIES
from cagepool.cyborg.parity.recorder import (
    RecordedEpisode,
    Sessions,
    dictionary_sessions,
    record_episode,
)
from cagepool.evaluate.protocol import official_red_names
from cagepool.sim import Batch, BatchConfig, dtypes
from cagepool.sim.names import HOSTS, OFFICIAL_REDS, edition_code, red_bitmask

MIXED = "mixed"
AUTO = "auto"

Draws: TypeAlias = dict[str, int]

COPIES = 256
# The rarest combination of draws, an undetected fourth-best exploit on one host of 13 while green
# scans one of 8, has a probability of 1 in 70,000.
ATTEMPTS = 100_000_000 // COPIES
_DRAW_FIELDS = ("green_host", "red_target", "exploit", "detected")
_ALL_COPIES = np.arange(COPIES)


@dataclass(frozen=True, kw_only=True)
class ParityConfig:
    """Episodes that are compared."""

    episodes: int = 10
    """Episodes per red agent and green setting."""
    max_steps: int = 100
    """Steps per episode."""
    red: tuple[str, ...] = OFFICIAL_REDS
    """Red agents, by class name or alias."""
    greens: tuple[bool, ...] = (False, True)
    """Green settings: without GreenAgent, with it, or both."""
    blue: str = MIXED
    """One of `FUZZ_POLICIES`, or `mixed`: the episodes alternate between them."""
    seed: int = 0
    """Random seed of the comparison."""
    edition: str = AUTO
    """Edition that CybORG must have, or `auto` for either."""
    checkout: str | None = None
    """Folder of CybORG; see `CybORGEnv`."""

    def __post_init__(self) -> None:
        """Check all settings that can be checked without CybORG."""
        official_red_names(self.red)
        if self.blue not in (MIXED, *FUZZ_POLICIES):
            known = ", ".join((MIXED, *FUZZ_POLICIES))
            raise ValueError(f"blue must be one of {known}; got {self.blue!r}")
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
    """Red agent and green setting of some episodes."""

    red: str
    green: bool


@dataclass
class CellResult:
    """Comparison of the episodes of one cell."""

    episodes: int = 0  # compared
    steps: int = 0
    set_aside: int = 0  # episodes that are not compared, because a process id was reused
    mismatches: list[Mismatch] = field(default_factory=list)

    def add(self, recording: RecordedEpisode, follower: "NativeFollower") -> None:
        """Compare one more episode."""
        if recording.reused_pid:
            self.set_aside += 1
            return
        found = replay_mismatches(recording.trace) or list(follower.mismatches(recording))
        self.mismatches += [mismatch._replace(episode=self.recorded) for mismatch in found]
        self.episodes += 1
        self.steps += recording.trace["blue_action"].size

    @property
    def recorded(self) -> int:
        """Episodes that were recorded, compared or not."""
        return self.episodes + self.set_aside


@dataclass(frozen=True)
class ParityResult:
    """Comparison of all cells."""

    edition: str
    cells: dict[Cell, CellResult]

    @property
    def mismatches(self) -> list[tuple[Cell, Mismatch]]:
        """Mismatches of all cells."""
        return [
            (cell, mismatch)
            for cell, result in self.cells.items()
            for mismatch in result.mismatches
        ]


def parity_cells(config: ParityConfig) -> list[Cell]:
    """Pairs of red agent and green setting that are compared."""
    return [
        Cell(red, green) for red, green in product(official_red_names(config.red), config.greens)
    ]


def run_parity(
    config: ParityConfig, on_recorded: Callable[[RecordedEpisode], None] = lambda _recording: None
) -> ParityResult:
    """Record all episodes, compare them, and call `on_recorded` with each.

    Raises:
        CybORGNotFoundError: CybORG is missing or cannot be imported.
        ValueError: CybORG is of another edition.
    """
    results: dict[Cell, CellResult] = {}
    for cell in parity_cells(config):
        env = _make_env(config, cell)
        follower = NativeFollower(
            red=cell.red, green=cell.green, edition=env.edition, max_steps=config.max_steps
        )
        results[cell] = result = CellResult()
        for episode in range(config.episodes):
            seed = _episode_seed(config, cell, episode)
            recording = record_episode(env, _blue_policy(config, episode), seed)
            result.add(recording, follower)
            on_recorded(recording)
    return ParityResult(env.edition, results)


class NativeFollower:
    """A native game that follows recorded episodes by rejection sampling of its random draws.

    Each step is played by many copies of the game with new seeds, until a copy makes the recorded
    draws; the game continues from that copy. Hence the generator is tested too, which a replay of
    given draws does not use.
    """

    def __init__(self, **settings: Any) -> None:
        """Create the game with the settings of `sim.BatchConfig`."""
        self._batch = Batch(COPIES, BatchConfig(autoreset="disabled", **settings))
        self._seeds = np.arange(COPIES, dtype=np.uint64)

    def mismatches(self, recording: RecordedEpisode) -> Iterator[Mismatch]:
        """Follow a recording, and yield the differences of true states and sessions.

        Raises:
            RuntimeError: the native game never made the recorded draws.
        """
        self._batch.reset(self._seeds)
        trace = recording.trace
        for step, action in enumerate(trace["blue_action"][0].tolist()):
            self._step(action, {name: int(trace[name][0, step]) for name in _DRAW_FIELDS})
            yield from self._true_state_mismatches(step, recording.true_states[0, step])
            if step in recording.sessions:
                yield from self._session_mismatches(step, recording.sessions[step])

    def _step(self, action: int, draws: Draws) -> None:
        batch = self._batch
        start = batch.save(_ALL_COPIES[:1])
        for _ in range(ATTEMPTS):
            self._seeds += np.uint64(COPIES)
            batch.reseed(_ALL_COPIES, self._seeds)
            batch.step(np.full(COPIES, action))
            agrees = np.all([batch.moves[name] == drawn for name, drawn in draws.items()], axis=0)
            if agrees.any():
                chosen = batch.save(np.flatnonzero(agrees)[:1])
                batch.restore(_ALL_COPIES, chosen * COPIES)
                return
            batch.restore(_ALL_COPIES, start * COPIES)
        raise RuntimeError(f"the native game must be able to draw {draws}, got other draws only")

    def _true_state_mismatches(self, step: int, theirs: Any) -> Iterator[Mismatch]:
        ours = self._batch.true_state[0]
        if theirs.tobytes() == ours.tobytes():
            return
        for name in dtypes.TRUE_STATE.names or ():
            if np.any(theirs[name] != ours[name]):
                yield Mismatch(0, step, f"true_state {name}", str(theirs[name]), str(ours[name]))

    def _session_mismatches(self, step: int, theirs: Sessions) -> Iterator[Mismatch]:
        ours = dictionary_sessions(true_state_dict(self._batch, 0))
        for host in HOSTS:
            if theirs[host] != ours[host]:
                yield Mismatch(0, step, f"sessions {host}", str(theirs[host]), str(ours[host]))


def _make_env(config: ParityConfig, cell: Cell) -> CybORGEnv:
    return CybORGEnv(
        red=cell.red,
        green=cell.green,
        max_steps=config.max_steps,
        edition=None if config.edition == AUTO else config.edition,
        checkout=config.checkout,
    )


def _blue_policy(config: ParityConfig, episode: int) -> str:
    return [*FUZZ_POLICIES][episode % len(FUZZ_POLICIES)] if config.blue == MIXED else config.blue


def _episode_seed(config: ParityConfig, cell: Cell, episode: int) -> int:
    key = (red_bitmask(cell.red), int(cell.green), episode)
    return int(np.random.SeedSequence(config.seed, spawn_key=key).generate_state(1)[0])

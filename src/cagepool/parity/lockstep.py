"""Plays episodes of CybORG and compares each with the native game, step by step."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cagepool import _core
from cagepool.cyborg import CybORGEnv
from cagepool.cyborg.dict_state import session_log, true_state_dict
from cagepool.cyborg.env import GIVEN
from cagepool.parity.fuzz_policies import FUZZ_POLICIES, random_scenario
from cagepool.parity.recorder import (
    RecordedEpisode,
    Sessions,
    dictionary_sessions,
    record_episode,
)
from cagepool.scenarios import CAGE2, Scenario, resolve_scenarios
from cagepool.sim import Batch, BatchConfig, replay
from cagepool.sim.names import OFFICIAL_REDS, RED_ALIASES, edition_code, red_bitmask
from cagepool.sim.settings import DEFAULT_MAX_STEPS
from cagepool.sim.trace import Trace
from cagepool.types import Bools

_STEP_FIELD_NDIM = 2  # episodes and steps; fields of whole episodes are inputs


class Mismatch(NamedTuple):
    """A value in which CybORG and the native game differ."""

    episode: int
    step: int
    field: str
    cyborg: str
    native: str

    def __str__(self) -> str:
        where = f"episode {self.episode}, step {self.step}, {self.field}"
        return f"{where}: CybORG {self.cyborg}, native {self.native}"


def replay_mismatches(
    trace: Mapping[str, NDArray[Any]], scenario: Scenario = CAGE2
) -> list[Mismatch]:
    """Replay a recording and list all values that differ, in order of episode and step."""
    found: list[Mismatch] = []
    for episode in range(len(trace["blue_action"])):
        rows = slice(episode, episode + 1)
        single = {name: field if name == "meta" else field[rows] for name, field in trace.items()}
        found += (
            mismatch._replace(episode=episode) for mismatch in _episode_mismatches(single, scenario)
        )
    return found


def _episode_mismatches(trace: Trace, scenario: Scenario) -> list[Mismatch]:
    try:
        native = replay(trace, scenario=scenario)
    except ValueError as refusal:  # a recorded draw that the native game cannot make
        step = re.search(r"step (\d+)", str(refusal))
        if step is None:
            raise
        field, _, _ = str(refusal).partition(" ")
        _, _, condition = str(refusal).partition(" must be ")
        got = condition.rpartition(" ")[2]
        return [Mismatch(0, int(step[1]), field, got, f"must be {condition}")]
    fields = [name for name in native if name in trace and native[name].ndim >= _STEP_FIELD_NDIM]
    found = [mismatch for name in fields for mismatch in _field_mismatches(name, trace, native)]
    return sorted(found, key=lambda mismatch: mismatch.step)


def _field_mismatches(field: str, trace: Trace, native: Trace) -> Iterator[Mismatch]:
    """Mismatches of one field, (1, step, ...), of one episode."""
    ours, theirs = native[field], trace[field]
    for position in map(tuple, np.argwhere(theirs != ours)):
        _, step, *index = position
        name = "".join([field, *(f"[{number}]" for number in index)])
        yield Mismatch(0, int(step), name, str(theirs[position]), str(ours[position]))


MIXED = "mixed"
AUTO = "auto"
REDS = (*OFFICIAL_REDS, GIVEN)
"""Red agents of CybORG, and a red that is played from outside."""

COPIES = 256
# The rarest combination of draws, an undetected fourth-best exploit on one host of 64 while green
# scans one of 8, has a probability of 1 in 350,000.
ATTEMPTS = 100_000_000 // COPIES
_DRAW_FIELDS = ("green_host", "red_target", "exploit", "detected", "decoy_pick")
_ALL_COPIES = np.arange(COPIES)


@dataclass(frozen=True, kw_only=True)
class ParityConfig:
    """Episodes that are compared."""

    episodes: int = 10
    """Episodes per scenario, red agent and green setting."""
    max_steps: int = DEFAULT_MAX_STEPS
    """Steps per episode."""
    scenario: tuple[str, ...] = ()
    """Scenarios: scenario files, folders of them, suites; by default CybORG's Scenario2."""
    generate: int = 0
    """Number of random scenarios besides."""
    red: tuple[str, ...] = REDS
    """Red agents, by class name or alias, and `given`: a random red that is played from outside.
    An agent that cannot play a scenario is left out there."""
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
        red_names(self.red)
        if self.blue not in (MIXED, *FUZZ_POLICIES):
            known = ", ".join((MIXED, *FUZZ_POLICIES))
            raise ValueError(f"blue must be one of {known}; got {self.blue!r}")
        if self.episodes < 1:
            raise ValueError(f"episodes must be at least 1, got {self.episodes}")
        if not 1 <= self.max_steps <= _core.MAX_STEPS:
            raise ValueError(f"max_steps must be from 1 to {_core.MAX_STEPS}, got {self.max_steps}")
        if self.seed < 0:
            raise ValueError(f"seed must be at least 0, got {self.seed}")
        if self.generate < 0:
            raise ValueError(f"generate must be at least 0, got {self.generate}")
        if self.edition != AUTO:
            edition_code(self.edition)


@dataclass(frozen=True)
class Cell:
    """Scenario, red agent and green setting of some episodes."""

    red: str
    green: bool
    scenario: Scenario = CAGE2
    file: Path | None = None  # that CybORG loads; None: Scenario2, or a saved copy of `scenario`


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
        found = replay_mismatches(recording.trace, follower.scenario)
        found = found or list(follower.mismatches(recording))
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


def red_names(reds: tuple[str, ...]) -> tuple[str, ...]:
    """Class names of red agents that are given by class name, alias or `given`."""
    names = tuple(RED_ALIASES.get(red, red) for red in reds)
    unknown = [red for red, name in zip(reds, names, strict=True) if name not in REDS]
    if unknown or not names:
        known = ", ".join((*REDS, *RED_ALIASES))
        got = repr(unknown[0]) if unknown else "none"
        raise ValueError(f"red must be one or more of {known}; got {got}")
    return tuple(dict.fromkeys(names))


def parity_cells(config: ParityConfig) -> list[Cell]:
    """Combinations of scenario, red agent and green setting that are compared."""
    scenarios = _scenarios(config)
    pairs = list(product(scenarios, red_names(config.red)))
    refusals = [scenario.red_refusal(red) for (scenario, _), red in pairs]
    if all(refusals):
        raise ValueError(f"red must be able to play a scenario, but {refusals[0]}")
    return [
        Cell(red, green, scenario, file)
        for ((scenario, file), red), refusal in zip(pairs, refusals, strict=True)
        if refusal is None
        for green in config.greens
    ]


def run_parity(
    config: ParityConfig,
    cells: Sequence[Cell] | None = None,
    on_recorded: Callable[[RecordedEpisode], None] = lambda _recording: None,
) -> ParityResult:
    """Record the episodes of all cells, compare them, and call `on_recorded` with each.

    Args:
        config: Settings of the episodes.
        cells: What to compare; by default all of `parity_cells`.
        on_recorded: Called with each episode.
    """
    results: dict[Cell, CellResult] = {}
    for cell in parity_cells(config) if cells is None else cells:
        env = _make_env(config, cell)
        follower = NativeFollower(
            scenario=cell.scenario,
            red=cell.red,
            green=cell.green,
            edition=env.edition,
            max_steps=config.max_steps,
        )
        results[cell] = result = CellResult(mismatches=list(_action_mismatches(env)))
        for episode in range(config.episodes):
            seed = _episode_seed(config, cell, episode)
            recording = record_episode(env, _blue_policy(config, cell, episode), seed)
            result.add(recording, follower)
            on_recorded(recording)
    return ParityResult(env.edition, results)


class NativeFollower:
    """A native game that follows recorded episodes by rejection sampling of its random draws.

    Each step is played by many copies of the game with new seeds, until a copy makes the recorded
    draws; the game continues from that copy. Hence the generator is tested too, which a replay of
    given draws does not use.
    """

    def __init__(self, *, scenario: Scenario = CAGE2, **settings: Any) -> None:
        """Create the game with the settings of `sim.BatchConfig`."""
        self.scenario = scenario
        self.batch = Batch(COPIES, BatchConfig(scenario=scenario, autoreset="disabled", **settings))
        self._seeds = np.arange(COPIES, dtype=np.uint64)

    def mismatches(self, recording: RecordedEpisode) -> Iterator[Mismatch]:
        """Follow a recording, and yield the differences of true states and sessions."""
        self.batch.reset(self._seeds)
        for step in range(recording.trace["blue_action"].shape[1]):
            self._step(recording, step)
            yield from self._true_state_mismatches(step, recording.true_states[0, step])
            if step in recording.sessions:
                yield from self._session_mismatches(step, recording.sessions[step])

    def _step(self, recording: RecordedEpisode, step: int) -> None:
        batch = self.batch
        start = batch.save(_ALL_COPIES[:1])
        actions = np.full(COPIES, recording.trace["blue_action"][0, step], np.int64)
        red_actions = None
        if recording.red_actions is not None:
            red_actions = np.full(COPIES, recording.red_actions[step])
        for _ in range(ATTEMPTS):
            self._seeds += np.uint64(COPIES)
            batch.reseed(_ALL_COPIES, self._seeds)
            batch.step(actions, red_actions)
            agrees = self._agreement(recording, step)
            if agrees.any():
                chosen = batch.save(np.flatnonzero(agrees)[:1])
                batch.restore(_ALL_COPIES, chosen * COPIES)
                return
            batch.restore(_ALL_COPIES, start * COPIES)
        draws = {name: int(recording.trace[name][0, step]) for name in self._draw_fields(recording)}
        raise RuntimeError(f"the native game must be able to draw {draws}, got other draws only")

    def _draw_fields(self, recording: RecordedEpisode) -> list[str]:
        """Random draws that the moves of a step show."""
        names = self.batch.moves.dtype.names or ()
        drawn = [name for name in _DRAW_FIELDS if name in names and name in recording.trace]
        return [name for name in drawn if name != "red_target" or recording.red_actions is None]

    def _agreement(self, recording: RecordedEpisode, step: int) -> Bools:
        """Copies whose draws are the recorded ones."""
        trace = recording.trace
        fields = self._draw_fields(recording)
        moves = self.batch.moves
        agrees: Bools = np.all([moves[name] == trace[name][0, step] for name in fields], axis=0)
        escalated = recording.escalated.get(step)
        if escalated is not None:  # the moves do not show which session was drawn
            for copy in np.flatnonzero(agrees):
                agrees[copy] = session_log(self.batch, int(copy))[escalated - 1].privileged
        return agrees

    def _true_state_mismatches(self, step: int, theirs: Any) -> Iterator[Mismatch]:
        ours = self.batch.true_state[0]
        for name in theirs.dtype.names:
            if np.any(theirs[name] != ours[name]):
                yield Mismatch(0, step, f"true_state {name}", str(theirs[name]), str(ours[name]))

    def _session_mismatches(self, step: int, theirs: Sessions) -> Iterator[Mismatch]:
        ours = dictionary_sessions(true_state_dict(self.batch, 0))
        for host in self.scenario.hosts:
            if theirs[host] != ours[host]:
                yield Mismatch(0, step, f"sessions {host}", str(theirs[host]), str(ours[host]))


def _scenarios(config: ParityConfig) -> list[tuple[Scenario, Path | None]]:
    """Scenarios of a comparison, with the files of those that have one."""
    scenarios: list[tuple[Scenario, Path | None]] = []
    for name in config.scenario:
        path = Path(name)
        files = [path] if path.is_file() else sorted((*path.glob("*.yaml"), *path.glob("*.yml")))
        scenarios += [(Scenario.load(file), file) for file in files]
        if not files:
            scenarios += [(scenario, None) for scenario in resolve_scenarios(name)]
    seeds = range(config.seed, config.seed + config.generate)
    scenarios += [(random_scenario(seed), None) for seed in seeds]
    return scenarios or [(CAGE2, None)]


def _make_env(config: ParityConfig, cell: Cell) -> CybORGEnv:
    return CybORGEnv(
        scenario=cell.file or (None if cell.scenario == CAGE2 else cell.scenario),
        red=cell.red,
        green=cell.green,
        max_steps=config.max_steps,
        edition=None if config.edition == AUTO else config.edition,
        checkout=config.checkout,
    )


def _action_mismatches(env: CybORGEnv) -> Iterator[Mismatch]:
    """Differences of blue's action table."""
    for number, names in enumerate(zip_longest(env.action_names, env.scenario.actions)):
        if names[0] != names[1]:
            yield Mismatch(0, 0, f"action {number}", str(names[0]), str(names[1]))


def _blue_policy(config: ParityConfig, cell: Cell, episode: int) -> str:
    if config.blue != MIXED:
        return config.blue
    return [*FUZZ_POLICIES][(episode + _cell_key(cell)[-1]) % len(FUZZ_POLICIES)]


def _episode_seed(config: ParityConfig, cell: Cell, episode: int) -> int:
    key = (*_cell_key(cell), episode)
    return int(np.random.SeedSequence(config.seed, spawn_key=key).generate_state(1)[0])


def _cell_key(cell: Cell) -> tuple[int, ...]:
    key = (red_bitmask(cell.red), int(cell.green))
    # Another number per scenario, so that few episodes of many scenarios have all kinds of blue.
    return (*key, 0) if cell.scenario == CAGE2 else (*key, int(cell.scenario.hash[:8], 16))

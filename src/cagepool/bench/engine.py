"""How fast the engine is: whole calls from Python, random blue, 100-step episodes with resets."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle, islice, product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from cagepool import _core
from cagepool.bench import machine, subprocess_timer
from cagepool.bench.measure import Clock, Contender, Measurement, Pace, Settings, compare, timed
from cagepool.bench.result import Result
from cagepool.envs import make_vec
from cagepool.sim import Batch, BatchConfig
from cagepool.sim.names import OFFICIAL_REDS
from cagepool.types import Int64s

ATTACKERS = ("B_lineAgent", "RedMeanderAgent")
FEW, MANY, MOST = 100, 4096, 65536  # games
THEIRS = 1000  # games at which MiniCAGE is fastest
ORDER, ALIGNMENT = "critical_first", 30.0
SHIFT = 97
ACTION_SETS = 64  # drawn beforehand, so that drawing is not measured


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """What to measure."""

    pace: Pace = field(default_factory=Pace)
    other_build: Path | None = None
    """Folder with another build of cagepool, such as one tuned for this processor."""
    cyborg_python: str | None = None
    """A Python that can import CybORG; none: this one, if it can."""
    minicage: Path | None = None
    """Folder with the package `mini_CAGE`; none: it takes no part."""


@dataclass(frozen=True, kw_only=True)
class EngineResult(Result):
    """The native games, and what they are compared with."""

    def cost(self, group: str, name: str = "Batch.step", **settings: object) -> float:
        """Median nanoseconds of a step of the one contender with these settings; none: without."""
        (found,) = (
            measurement
            for measurement in self.groups[group]
            if measurement.name == name
            and all(measurement.settings.get(key) == value for key, value in settings.items())
        )
        return median(found.nanoseconds)

    @property
    def ratios(self) -> dict[str, float]:
        """The figures that claims are made of, each from one group."""
        groups = (_ratios_within, _ratios_of_vectors, _ratios_elsewhere)
        return {name: round(value, 3) for ratios in groups for name, value in ratios(self)}

    def facts(self) -> dict[str, object]:
        """What else belongs into the JSON."""
        return {
            "bytes_per_game": _core.GAME_BYTES,
            "bytes_of_true_state_per_game": _core.TRUE_STATE_BYTES,
        }


def batch_clock(games: int, **settings: Any) -> Clock:
    """A clock of `Batch.step` with random actions."""
    batch = Batch(games, BatchConfig(**settings))
    batch.reset(np.arange(games, dtype=np.uint64))
    return _stepping(batch.step, games)


def measure_engine(
    config: EngineConfig, progress: Callable[[str, int, int], object]
) -> EngineResult:
    """Measure group after group.

    `progress` is told the group under way, the turns done and the turns in all.

    Raises:
        ValueError: no other build, no MiniCAGE in its folder, or no CybORG in its Python.
    """
    with ExitStack() as stack:
        groups = _groups(config, stack)
        turns = config.pace.repetitions * sum(map(len, groups.values()))
        done = 0

        def advance(group: str) -> None:
            nonlocal done
            done += 1
            progress(group, done, turns)

        before = machine.describe()
        measured = {
            name: compare(contenders, config.pace, partial(advance, name))
            for name, contenders in groups.items()
        }
    measured["busy"] = _beside_a_busy_core(config.pace)
    return EngineResult(machine=before, load_after=machine.load(), groups=measured)


def _groups(config: EngineConfig, stack: ExitStack) -> dict[str, list[Contender]]:
    """All contenders, those in other processes first: they are refused before time is spent."""
    other = _elsewhere(config, stack)
    judged: list[dict[str, Any]] = [{}, {"order": ORDER}, {"order": ORDER, "alignment": ALIGNMENT}]
    options: list[dict[str, Any]] = [{}, {"green": True}, {"observation_dtype": "uint8"}]
    return {
        "batch": [_batch(n, red=red) for n in (1, FEW, 1000, MANY, MOST) for red in OFFICIAL_REDS],
        "vector": [
            contender
            for games, red in product((1, FEW, MANY), ATTACKERS)
            for contender in (_batch(games, red=red), _vector(games, red=red))
        ],
        "call": [_batch(games, red="SleepAgent") for games in (1, 2)],
        "threads": [_batch(games, threads=t) for games in (MANY, MOST) for t in (1, 2)],
        "compliance": [
            contender
            for games, more in product((FEW, MANY), judged)
            for contender in (_batch(games, **more), _vector(games, **more))
        ],
        "options": [_batch(MANY, **more) for more in options],
        "limit": [make(games) for make in (_batch, _outputs_only) for games in (MANY, MOST)],
        **other,
    }


def _elsewhere(config: EngineConfig, stack: ExitStack) -> dict[str, list[Contender]]:
    """Contenders in other processes, each beside ours."""
    groups: dict[str, list[Contender]] = {}
    if config.other_build is not None:
        groups["build"] = [
            contender
            for games, red in product((FEW, MANY), ATTACKERS)
            for contender in (
                _other_build(config.other_build, games, red, stack),
                _batch(games, red=red),
            )
        ]
    if config.cyborg_python is not None or subprocess_timer.has_cyborg(sys.executable):
        python = config.cyborg_python or sys.executable
        groups["cyborg"] = [
            contender
            for red in ATTACKERS
            for contender in (_cyborg(python, red, stack), _batch(MANY, red=red))
        ]
    if config.minicage is not None:
        groups["minicage"] = [
            contender
            for red in ATTACKERS
            for contender in (_minicage(config.minicage, red, stack), _batch(THEIRS, red=red))
        ]
    return groups


def _stepping(step: Callable[[Int64s], object], games: int) -> Clock:
    """A clock that adds as little as Python can to the calls themselves."""
    actions = _random_actions(games)

    def clock(calls: int, /) -> float:
        chosen = list(islice(actions, calls))
        start = time.perf_counter()
        for action in chosen:
            step(action)
        return time.perf_counter() - start

    return clock


def _random_actions(games: int) -> Iterator[Int64s]:
    """Overlapping pieces of one row, so that they take no more of the cache than one does."""
    row = np.random.default_rng(0).integers(0, _core.ACTION_COUNT, games + ACTION_SETS * SHIFT)
    return cycle([row[i * SHIFT :][:games] for i in range(ACTION_SETS)])


def _batch(games: int, *, red: str = "B_lineAgent", threads: int = 1, **more: Any) -> Contender:
    settings: Settings = {"games": games, "red": red, "threads": threads, **more}
    clock = batch_clock(games, red=red, threads=threads, **more)
    return Contender(name="Batch.step", settings=settings, steps=games, clock=clock)


def _vector(games: int, *, red: str = "B_lineAgent", **more: Any) -> Contender:
    envs = make_vec(games, red=red, threads=1, **more)
    envs.reset(seed=0)
    return Contender(
        name="VectorEnv.step",
        settings={"games": games, "red": red, "threads": 1, **more},
        steps=games,
        clock=_stepping(envs.step, games),
    )


def _outputs_only(games: int) -> Contender:
    """What no engine can be faster than: writing observations, rewards, flags and moves."""
    batch = Batch(games)
    outputs = (batch.observations, batch.rewards, batch.truncations, batch.moves.view(np.uint64))

    def write() -> None:
        for output in outputs:
            output.fill(0)

    settings: Settings = {"games": games, "threads": 1}
    return Contender(name="outputs only", settings=settings, steps=games, clock=timed(write))


def _other_build(folder: Path, games: int, red: str, stack: ExitStack) -> Contender:
    return Contender(
        name="other build",
        settings={"games": games, "red": red, "threads": 1},
        steps=games,
        clock=stack.enter_context(subprocess_timer.another_build(folder, games, red)),
    )


def _cyborg(python: str, red: str, stack: ExitStack) -> Contender:
    return Contender(
        name="CybORG",
        settings={"games": 1, "red": red, "threads": 1},
        steps=1,
        clock=stack.enter_context(subprocess_timer.cyborg(python, red)),
    )


def _minicage(folder: Path, red: str, stack: ExitStack) -> Contender:
    return Contender(
        name="MiniCAGE",
        settings={"games": THEIRS, "red": red, "threads": 1},
        steps=THEIRS,
        clock=stack.enter_context(subprocess_timer.minicage(folder, THEIRS, red)),
    )


@contextmanager
def _busy_core() -> Iterator[None]:
    """Another process that never waits."""
    hog = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        hog.kill()
        hog.wait()


def _beside_a_busy_core(pace: Pace) -> list[Measurement]:
    with _busy_core():
        return compare([_batch(MANY, threads=t) for t in (1, 2)], pace, lambda: None)


def _ratios_within(result: EngineResult) -> Iterator[tuple[str, float]]:
    cost = result.cost
    yield "nanoseconds of a Batch.step call", 2 * (cost("call", games=1) - cost("call", games=2))
    for games in (MANY, MOST):
        gain = cost("threads", games=games, threads=1) / cost("threads", games=games, threads=2)
        yield f"2 threads against 1, {games} games", gain
    gain = cost("busy", threads=1) / cost("busy", threads=2)
    yield f"2 threads against 1, {MANY} games, beside a busy core", gain
    for name, games in product(("Batch.step", "VectorEnv.step"), (FEW, MANY)):
        unjudged = cost("compliance", name, games=games, order=None)
        judged = cost("compliance", name, games=games, order=ORDER, alignment=None)
        aligned = cost("compliance", name, games=games, order=ORDER, alignment=ALIGNMENT)
        yield f"{name} with compliance against none, {games} games", judged / unjudged
        yield f"{name} with compliance and alignment, {games} games", aligned / unjudged
    for games in (MANY, MOST):
        writing = cost("limit", "outputs only", games=games)
        yield f"writing outputs against a step, {games} games", writing / cost("limit", games=games)


def _ratios_of_vectors(result: EngineResult) -> Iterator[tuple[str, float]]:
    for games, red in product((1, FEW, MANY), ATTACKERS):
        bare = result.cost("vector", games=games, red=red)
        vector = result.cost("vector", "VectorEnv.step", games=games, red=red)
        label = f"microseconds of VectorEnv.step over Batch.step, {games} games, {red}"
        yield label, games * (vector - bare) / 1000


def _ratios_elsewhere(result: EngineResult) -> Iterator[tuple[str, float]]:
    """Those with contenders in other processes, where there were any."""
    if "build" in result.groups:
        for games, red in product((FEW, MANY), ATTACKERS):
            other = result.cost("build", "other build", games=games, red=red)
            gain = other / result.cost("build", games=games, red=red)
            yield f"this build against the other, {games} games, {red}", gain
    if "cyborg" in result.groups:
        for red in ATTACKERS:
            gain = result.cost("cyborg", "CybORG", red=red) / result.cost("cyborg", red=red)
            yield f"against CybORG, {MANY} games, {red}", gain
    if "minicage" in result.groups:
        for red in ATTACKERS:
            gain = result.cost("minicage", "MiniCAGE", red=red) / result.cost("minicage", red=red)
            yield f"against MiniCAGE, {THEIRS} games, {red}", gain

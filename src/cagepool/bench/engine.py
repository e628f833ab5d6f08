"""How fast the engine is: whole calls from Python, random blue, 100-step episodes with resets."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from cagepool import _core
from cagepool.bench import elsewhere, machine
from cagepool.bench.measure import Clock, Contender, Measurement, Pace, Settings, compare, timed
from cagepool.envs import make_vec
from cagepool.sim import Batch, BatchConfig
from cagepool.sim.reds import MIX

ATTACKERS = ("B_lineAgent", "RedMeanderAgent")
ORDER = "critical_first"
ACTION_SETS = 64  # drawn beforehand, so that drawing is not measured


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """What to measure."""

    pace: Pace = field(default_factory=Pace)
    other_build: Path | None = None
    """Folder with another build of cagepool, such as one tuned for this processor."""
    cyborg_python: str = sys.executable
    """A Python that can import CybORG; without one CybORG is left out."""


Groups = dict[str, list[Contender]]


def batch_clock(games: int, **settings: Any) -> Clock:
    """A clock of `Batch.step` with random actions."""
    batch = Batch(games, BatchConfig(**settings))
    batch.reset(np.arange(games, dtype=np.uint64))
    actions = _random_actions(games)
    step = batch.step
    return timed(lambda: step(next(actions)))


def measure_engine(config: EngineConfig, progress: Callable[[str, int, int], object]) -> Any:
    """Measure group after group; returns what goes into the JSON file.

    `progress` is told the group under way, the turns done and the turns in all.
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
    return {
        "machine": before,
        "load_after": machine.load(),
        "bytes_per_game": _core.GAME_BYTES,
        "bytes_of_true_state_per_game": _core.TRUE_STATE_BYTES,
        "groups": {name: [m.as_dict() for m in group] for name, group in measured.items()},
        "ratios": _ratios(measured),
    }


def _groups(config: EngineConfig, stack: ExitStack) -> Groups:
    groups: Groups = {
        "batch": [_batch(n, red=red) for n in (1, 100, 1000, 4096, 65536) for red in MIX],
        "vector": [
            contender
            for games in (1, 100, 4096)
            for red in ATTACKERS
            for contender in (_batch(games, red=red), _vector(games, red))
        ],
        "call": [_batch(n, red="SleepAgent") for n in (1, 2)],
        "threads": [_batch(n, threads=t) for n in (4096, 65536) for t in (1, 2)],
        "compliance": [
            _batch(n, **judged)
            for n in (100, 4096)
            for judged in ({}, {"order": ORDER}, {"order": ORDER, "alignment": 30.0})
        ],
        "options": [
            _batch(4096, **options)
            for options in ({}, {"green": True}, {"observation_dtype": "uint8"})
        ],
        "limit": [_batch(n) for n in (4096, 65536)] + [_outputs_only(n) for n in (4096, 65536)],
    }
    if config.other_build is not None:
        groups["build"] = [
            contender
            for games in (100, 4096)
            for red in ATTACKERS
            for contender in (
                _other_build(config.other_build, games, red, stack),
                _batch(games, red=red),
            )
        ]
    if elsewhere.has_cyborg(config.cyborg_python):
        groups["cyborg"] = [
            contender
            for red in ATTACKERS
            for contender in (_cyborg(config.cyborg_python, red, stack), _batch(4096, red=red))
        ]
    return groups


def _random_actions(games: int) -> Iterator[np.ndarray[Any, np.dtype[np.int64]]]:
    random = np.random.default_rng(0)
    return cycle([random.integers(0, _core.ACTION_COUNT, games) for _ in range(ACTION_SETS)])


def _batch(games: int, *, red: str = "B_lineAgent", threads: int = 1, **more: Any) -> Contender:
    settings = {"games": games, "red": red, "threads": threads, **more}
    clock = batch_clock(games, red=red, threads=threads, **more)
    return Contender(name="Batch.step", settings=settings, steps=games, clock=clock)


def _vector(games: int, red: str) -> Contender:
    envs = make_vec(games, red=red, threads=1)
    envs.reset(seed=0)
    actions = _random_actions(games)
    return Contender(
        name="VectorEnv.step",
        settings={"games": games, "red": red, "threads": 1},
        steps=games,
        clock=timed(lambda: envs.step(next(actions))),
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
        name="Batch.step of the other build",
        settings={"games": games, "red": red, "threads": 1},
        steps=games,
        clock=stack.enter_context(elsewhere.another_build(folder, games, red)),
    )


def _cyborg(python: str, red: str, stack: ExitStack) -> Contender:
    return Contender(
        name="CybORG",
        settings={"games": 1, "red": red},
        steps=1,
        clock=stack.enter_context(elsewhere.cyborg(python, red)),
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
        return compare([_batch(4096, threads=t) for t in (1, 2)], pace, lambda: None)


def _ratios(measured: dict[str, list[Measurement]]) -> dict[str, float]:
    """The figures that claims are made of, each from one group, whose members took turns."""

    def cost(group: str, index: int) -> float:
        return median(measured[group][index].nanoseconds)

    def gain(group: str, slow: int, fast: int) -> float:
        return cost(group, slow) / cost(group, fast)

    ratios = {
        "nanoseconds of a Batch.step call": 2 * (cost("call", 0) - cost("call", 1)),
        "2 threads against 1, 4096 games": gain("threads", 0, 1),
        "2 threads against 1, 65536 games": gain("threads", 2, 3),
        "2 threads against 1, 4096 games, beside a busy core": gain("busy", 0, 1),
        "compliance against none, 100 games": gain("compliance", 1, 0),
        "compliance and alignment against none, 100 games": gain("compliance", 2, 0),
        "compliance against none, 4096 games": gain("compliance", 4, 3),
        "compliance and alignment against none, 4096 games": gain("compliance", 5, 3),
        "writing outputs against a step, 4096 games": gain("limit", 2, 0),
        "writing outputs against a step, 65536 games": gain("limit", 3, 1),
    }
    for index in range(0, len(measured["vector"]), 2):
        settings = measured["vector"][index].settings
        games, red = int(settings["games"]), settings["red"]
        extra = games * (cost("vector", index + 1) - cost("vector", index)) / 1000
        ratios[f"microseconds of VectorEnv.step over Batch.step, {games} games, {red}"] = extra
    for group, name in (("build", "this build against the other"), ("cyborg", "against CybORG")):
        for index in range(0, len(measured.get(group, ())), 2):
            settings = measured[group][index + 1].settings
            label = f"{name}, {settings['games']} games, {settings['red']}"
            ratios[label] = gain(group, index, index + 1)
    return {name: round(value, 3) for name, value in ratios.items()}

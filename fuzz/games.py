"""Random games for the harnesses."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from cagepool import _core
from cagepool.scenarios import Scenario
from cagepool.sim import Batch, BatchConfig
from cagepool.sim.names import red_class_names
from cagepool.sim.red_observation import red_space
from fuzz.values import chance, pick

REDS = ("B_lineAgent", "RedMeanderAgent", "SleepAgent", "mix", "given", "b_line+meander")
ORDERS = (None, "critical_first", "op_server>enterprise>op_host>user>defender")


SAMPLES = Path(__file__).parents[1] / "tests" / "golden" / "scenarios"


@cache
def networks() -> list[Scenario]:
    """Sample files and generated networks."""
    files = [Scenario.load(path) for path in sorted(SAMPLES.glob("*.yaml"))]
    reds = ("RedMeanderAgent",)
    return files + [
        Scenario.generate(seed, images="any", subnets=(1, 6), entry="random", reds=reds)
        for seed in range(20)
    ]


def random_settings(rng: Generator) -> dict[str, Any]:
    """Return valid settings of a batch."""
    order = pick(rng, ORDERS)
    return {
        "red": pick(rng, REDS),
        "edition": pick(rng, ("2.1", "leaderboard")),
        "max_steps": int(pick(rng, (1, 2, 5, 30, 100, 65_535))),
        "green": chance(rng, 0.5),
        "order": order,
        "alignment": float(pick(rng, (0, 30))) if order else 0.0,
        "knowledge": pick(rng, ("true", "observed")),
        "definition": pick(rng, ("host", "fix-type")),
        "autoreset": pick(rng, ("next_step", "same_step", "disabled")),
        "observation_dtype": pick(rng, ("float32", "uint8")),
    }


def random_batch(rng: Generator, **changed: Any) -> Batch:
    """Create a batch of a few games, usually reset."""
    settings = random_settings(rng) | changed
    if chance(rng, 0.5):
        settings |= _random_networks(rng, settings["red"])
    batch = Batch(int(rng.integers(1, 6)), BatchConfig(**settings))
    if chance(rng, 0.9):
        batch.reset(rng.integers(2**63, size=batch.games, dtype=np.uint64))
    return batch


def _random_networks(rng: Generator, red: str) -> dict[str, Any]:
    """Settings of other networks, which the red agents can play."""
    reds = red_class_names(red)
    playable = [one for one in networks() if not any(map(one.red_refusal, reds))]
    return {
        "scenario": [pick(rng, playable) for _ in range(int(rng.integers(1, 4)))],
        "scenario_per": pick(rng, ("env", "episode")),
        "definition": "host",
    }


def random_actions(
    rng: Generator, games: int, actions: int = _core.ACTION_COUNT
) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """Return actions of blue; most repair or decoy, so that short games have effects."""
    return rng.integers(actions, size=games)


def random_red_actions(rng: Generator, batch: Batch) -> Any:
    """Return actions of red where the caller plays it, else None."""
    if batch.config.red != "given":
        return None
    return rng.integers(red_space(batch).actions, size=batch.games)


def play_steps(rng: Generator, batch: Batch, steps: int) -> None:
    """Step all games, and reset those that are over where nothing else does."""
    for _ in range(steps):
        actions = random_actions(rng, batch.games, len(batch.layout.actions))
        batch.step(actions, random_red_actions(rng, batch))
        if batch.config.autoreset == "disabled":
            batch.reset(ids=np.flatnonzero(batch.truncations))

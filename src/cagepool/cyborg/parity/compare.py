"""Compares recorded episodes with their native replay."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cagepool.scenarios import Scenario
from cagepool.sim import replay
from cagepool.sim.trace import Trace

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
    trace: Mapping[str, NDArray[Any]], scenario: Scenario | None = None
) -> list[Mismatch]:
    """Replay a recording and list all values that differ, in order of episode and step.

    Args:
        trace: Fields of a recording.
        scenario: Network of the games; by default the built-in one.
    """
    found: list[Mismatch] = []
    for episode in range(len(trace["blue_action"])):
        rows = slice(episode, episode + 1)
        single = {name: field if name == "meta" else field[rows] for name, field in trace.items()}
        found += (
            mismatch._replace(episode=episode) for mismatch in _episode_mismatches(single, scenario)
        )
    return found


def _episode_mismatches(trace: Trace, scenario: Scenario | None) -> list[Mismatch]:
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

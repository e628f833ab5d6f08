"""A recording against its replay by the native game."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cagepool.sim import dtypes, replay
from cagepool.sim.trace import Trace


class Mismatch(NamedTuple):
    """A value in which the two games differ."""

    episode: int
    step: int
    field: str
    cyborg: str
    native: str

    def __str__(self) -> str:
        where = f"episode {self.episode}, step {self.step}, {self.field}"
        return f"{where}: CybORG {self.cyborg}, native {self.native}"


def mismatches(trace: Mapping[str, NDArray[Any]]) -> list[Mismatch]:
    """Every value of a recording that its replay does not show, in order of episode and step."""
    found: list[Mismatch] = []
    for episode in range(len(trace["blue_action"])):
        part = slice(episode, episode + 1)
        one = {name: field if name == "meta" else field[part] for name, field in trace.items()}
        found += (fault._replace(episode=episode) for fault in _of_episode(one))
    return found


def _of_episode(trace: Trace) -> list[Mismatch]:
    try:
        native = replay(trace)
    except ValueError as refusal:  # a pick that the native game does not have
        step = re.search(r"step (\d+)", str(refusal))
        if step is None:
            raise
        pick, _, _ = str(refusal).partition(" ")
        said = str(refusal).partition(" must be ")[2]
        return [Mismatch(0, int(step[1]), pick, said.rpartition(" ")[2], f"must be {said}")]
    fields = [name for name in dtypes.TRACE_ROW.names or () if name in trace]
    found = [fault for name in fields for fault in _faults(name, trace[name], native[name])]
    return sorted(found, key=lambda fault: fault.step)


def _faults(field: str, cyborg: NDArray[Any], native: NDArray[Any]) -> Iterator[Mismatch]:
    """Differences of one episode's (1, step, ...) values."""
    for place in map(tuple, np.argwhere(cyborg != native)):
        _, step, *index = place
        name = "".join([field, *(f"[{number}]" for number in index)])
        yield Mismatch(0, int(step), name, str(cyborg[place]), str(native[place]))

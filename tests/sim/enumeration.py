"""A slow enumeration of all courses of short games, with exact probabilities.

The games are replayed with recorded draws (`_core.replay`), which names the candidates of every
draw that it is not given. Nothing is merged, left out or rounded.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cagepool import _core
from cagepool.scenarios import CAGE2, Layout
from cagepool.sim import dtypes
from cagepool.sim.names import EXPLOITS, TRACE_REDS, edition_code, host_index
from cagepool.sim.scenario_tables import core_scenarios

# Rules 1.4 and 4.2.
WEIGHTS = dict(zip(EXPLOITS, (2.0, 1.0, 3.0, 4.0, 0.1, 5.0, 6.0, 7.0), strict=True))
GREEN_HOSTS = [
    host_index(name)
    for name in (*(f"User{i}" for i in range(5)), *(f"Enterprise{i}" for i in range(3)))
]
ROW = dtypes.trimmed(dtypes.TRACE_ROW, len(CAGE2.hosts))
REFUSAL = re.compile(r"(\w+) of episode 0, step \d+ must be among .* \(([\d, ]+)\), got -1")
Draws = dict[str, int]

TABLES = core_scenarios([CAGE2], Layout.of([CAGE2]))


@dataclass(frozen=True)
class Course:
    """One course of a game, its probability given red, and its last step."""

    red: str
    draws: tuple[Draws, ...]
    probability: Fraction
    row: NDArray[np.void]


@dataclass(frozen=True)
class Enumeration:
    """All courses of a game with these settings."""

    edition: str
    green: bool

    def steps(self, course: Course, actions: Sequence[int]) -> Iterator[Course]:
        """All courses of the last action after a course of the actions before it."""
        green_draws = [(-1, Fraction(1, 2))] + [(host, Fraction(1, 16)) for host in GREEN_HOSTS]
        open_draws: list[tuple[Draws, Fraction]] = [
            ({"green_host": host}, course.probability * share)
            for host, share in (green_draws if self.green else [(-1, Fraction(1))])
        ]
        while open_draws:
            draws, probability = open_draws.pop()
            path = (*course.draws, draws)
            try:
                row = self._replay(course.red, path, actions)
            except ValueError as error:
                field, candidates = _refused(error)
                open_draws += [
                    (draws | {field: candidate}, probability * share)
                    for candidate, share in _shares(field, candidates)
                ]
            else:
                yield Course(course.red, path, probability, row)

    def _replay(
        self, red: str, path: tuple[Draws, ...], actions: Sequence[int]
    ) -> NDArray[np.void]:
        episode = np.zeros(1, dtypes.TRACE_EPISODE)
        episode["red"] = TRACE_REDS.index(red)
        episode["green"] = self.green
        episode["edition"] = int(edition_code(self.edition))
        inputs = np.zeros(len(path), dtypes.TRACE_INPUT)
        inputs["blue_action"] = actions
        for field in ("red_target", "exploit", "detected", "esc_pick", "green_host"):
            inputs[field] = [draws.get(field, -1) for draws in path]
        rows = np.zeros(len(path), dtypes.TRACE_ROW)
        _core.CompiledBatch.replay(
            **TABLES,
            episodes=dtypes.as_bytes(episode),
            inputs=dtypes.as_bytes(inputs),
            rows=dtypes.as_bytes(rows),
        )
        last: NDArray[np.void] = rows.view(ROW)[-1]
        return last


def start(reds: Sequence[str]) -> list[Course]:
    """The courses of no step, one per red agent."""
    return [Course(red, (), Fraction(1), np.zeros((), ROW)) for red in reds]


def _refused(error: ValueError) -> tuple[str, list[int]]:
    found = REFUSAL.fullmatch(str(error))
    assert found, error
    return found[1], [int(candidate) for candidate in found[2].split(", ")]


def _shares(field: str, candidates: list[int]) -> list[tuple[int, Fraction]]:
    """Probabilities of the candidates of a draw (rules, section 12)."""
    if field == "detected":
        return [(0, Fraction(1, 20)), (1, Fraction(19, 20))]
    if field == "exploit" and len(candidates) > 1:
        top = max(candidates, key=lambda exploit: WEIGHTS[EXPLOITS[exploit]])
        rest = Fraction(1, 4) / (len(candidates) - 1)
        return [(exploit, Fraction(3, 4) if exploit == top else rest) for exploit in candidates]
    return [(candidate, Fraction(1, len(candidates))) for candidate in candidates]

"""What others have scored, edition by edition; scores of the two must not be mixed.

Every row names its source. Rows that were measured come from playing the authors' own weights in
CybORG; their three lengths are prefixes of the same episodes.
"""

from typing import NamedTuple, TypeAlias

from cagepool.evaluate.rollout import OFFICIAL_LENGTHS
from cagepool.sim.names import OFFICIAL_REDS

Three: TypeAlias = tuple[float, float, float]

_LEADERBOARD = (
    "final leaderboard, README of cage-challenge/cage-challenge-2 at commit 606813b; "
    "1000 episodes a cell"
)
_CARDIFF = "weights of john-cardiff/-cyborg-cage-2 of 2022-07-16, measured in CybORG"
_KEEP = "noninductive.pt of Cybermonic's KEEP at ce78c31, measured in CybORG"
_NOTHING = (0.0, 0.0, 0.0)


class Published(NamedTuple):
    """One result: means after 30, 50 and 100 steps, and the total of the nine cells."""

    name: str
    method: str
    source: str
    how: str  # in short
    total: float
    b_line: Three
    meander: Three
    sleep: Three = _NOTHING

    def cells(self) -> dict[str, dict[int, float]]:
        """The means by red and length."""
        rows = (self.b_line, self.meander, self.sleep)
        return {
            red: dict(zip(OFFICIAL_LENGTHS, row, strict=True))
            for red, row in zip(OFFICIAL_REDS, rows, strict=True)
        }

    def as_dict(self) -> dict[str, object]:
        """The result as plain values, fit for JSON."""
        texts = {name: getattr(self, name) for name in ("name", "method", "source", "how")}
        return {**texts, "total": self.total, "cells": self.cells()}


def _ranked(name: str, method: str, total: float, *rows: Three) -> Published:
    return Published(name, method, _LEADERBOARD, "leaderboard", total, *rows)


# In order of rank; what was measured on the leaderboard's edition stands at its end.
PUBLISHED: dict[str, tuple[Published, ...]] = {
    "2.1": (
        Published(
            "KEEP",
            "graph PPO, one policy for all reds",
            f"{_KEEP} at 26ce1c1, 100 episodes",
            "measured, 100 episodes",
            -58.46,
            (-3.82, -6.71, -14.12),
            (-6.21, -9.92, -17.68),
        ),
        Published(
            "Cardiff",
            "PPO + greedy decoys, trained on the leaderboard's edition",
            f"{_CARDIFF} at 26ce1c1, 200 episodes",
            "measured, 200 episodes",
            -86.22,
            (-5.05, -12.63, -37.16),
            (-5.67, -8.91, -16.80),
        ),
    ),
    "leaderboard": (
        _ranked(
            *("Cardiff", "PPO + greedy decoys", -54.57),
            *((-3.47, -6.41, -13.76), (-5.64, -8.69, -16.60)),
        ),
        _ranked(
            *("Keeping it RL", "ensemble of ensembles", -56.90),
            *((-3.48, -5.85, -11.39), (-6.47, -10.33, -19.38)),
        ),
        _ranked(
            *("Mindrake", "HIPPO, float observations", -57.05),
            *((-3.53, -6.20, -12.78), (-6.76, -10.13, -17.65)),
        ),
        _ranked(
            *("Mindrake", "HIPPO, heuristic", -57.29),
            *((-3.69, -6.24, -12.86), (-6.81, -10.09, -17.60)),
        ),
        _ranked(
            *("Mindrake", "HIPPO, bandit controller", -57.46),
            *((-3.73, -6.65, -12.86), (-6.85, -9.98, -17.39)),
        ),
        _ranked(
            *("Keeping it RL", "ensemble", -58.68),
            *((-3.62, -6.10, -11.90), (-6.57, -10.32, -20.16)),
        ),
        _ranked(
            *("CCS benchmark", "PPO of the organisers", -95.47),
            *((-8.75, -14.92, -30.19), (-7.31, -12.04, -22.21), (-0.01, -0.01, -0.03)),
        ),
        _ranked(
            *("CCS heuristic", "Blue React Restore; here restore-rotation", -823.89),
            *((-58.83, -93.05, -184.34), (-44.29, -85.75, -192.63), (-27.0, -46.0, -92.0)),
        ),
        _ranked(
            *("CCS random", "random actions", -2015.61),
            *((-154.06, -347.10, -726.92), (-33.43, -171.49, -566.41), (-2.80, -4.45, -8.94)),
        ),
        _ranked(
            *("CCS sleeper", "does nothing", -3112.20),
            *((-218.65, -480.17, -1134.03), (-39.31, -267.60, -972.43)),
        ),
        Published(
            "Cardiff, measured",
            "PPO + greedy decoys",
            f"{_CARDIFF} at 606813b, 200 episodes",
            "measured, 200 episodes",
            -54.78,
            (-3.46, -6.41, -13.53),
            (-5.67, -8.91, -16.80),
        ),
    ),
}

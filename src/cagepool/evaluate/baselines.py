"""Published scores by edition; scores of different editions must not be compared.

Every result names its source. Results marked as measured come from playing the weights of their
authors in CybORG; the three lengths are prefixes of the same episodes.
"""

from typing import TypeAlias

from cagepool.evaluate.rollout import OFFICIAL_LENGTHS
from cagepool.runs.schema import PublishedResult
from cagepool.sim.names import OFFICIAL_REDS

Means: TypeAlias = tuple[float, float, float]  # after 30, 50 and 100 steps

_LEADERBOARD = (
    "final leaderboard, README of cage-challenge/cage-challenge-2 at commit 606813b; "
    "1000 episodes per cell"
)
_CARDIFF = "weights of john-cardiff/-cyborg-cage-2 of 2022-07-16, measured in CybORG"
_KEEP = "noninductive.pt of Cybermonic's KEEP at ce78c31, measured in CybORG"
_ZEROS = (0.0, 0.0, 0.0)


def _cells(*rows: Means) -> dict[str, dict[int, float]]:
    """Means by red, in the order of the official reds, and length; zeros where a row is missing."""
    padded = (*rows, _ZEROS)[: len(OFFICIAL_REDS)]
    return {
        red: dict(zip(OFFICIAL_LENGTHS, row, strict=True))
        for red, row in zip(OFFICIAL_REDS, padded, strict=True)
    }


def _from_leaderboard(name: str, method: str, total: float, *rows: Means) -> PublishedResult:
    return PublishedResult(
        name=name,
        method=method,
        source=_LEADERBOARD,
        how="leaderboard",
        total=total,
        cells=_cells(*rows),
    )


# In order of rank; measurements on the edition of the leaderboard come last.
PUBLISHED: dict[str, tuple[PublishedResult, ...]] = {
    "2.1": (
        PublishedResult(
            name="KEEP",
            method="graph PPO, one policy for all reds",
            source=f"{_KEEP} at 26ce1c1, 100 episodes",
            how="measured, 100 episodes",
            total=-58.46,
            cells=_cells((-3.82, -6.71, -14.12), (-6.21, -9.92, -17.68)),
        ),
        PublishedResult(
            name="Cardiff",
            method="PPO + greedy decoys, trained on the leaderboard's edition",
            source=f"{_CARDIFF} at 26ce1c1, 200 episodes",
            how="measured, 200 episodes",
            total=-86.22,
            cells=_cells((-5.05, -12.63, -37.16), (-5.67, -8.91, -16.80)),
        ),
    ),
    "leaderboard": (
        _from_leaderboard(
            *("Cardiff", "PPO + greedy decoys", -54.57),
            *((-3.47, -6.41, -13.76), (-5.64, -8.69, -16.60)),
        ),
        _from_leaderboard(
            *("Keeping it RL", "ensemble of ensembles", -56.90),
            *((-3.48, -5.85, -11.39), (-6.47, -10.33, -19.38)),
        ),
        _from_leaderboard(
            *("Mindrake", "HIPPO, float observations", -57.05),
            *((-3.53, -6.20, -12.78), (-6.76, -10.13, -17.65)),
        ),
        _from_leaderboard(
            *("Mindrake", "HIPPO, heuristic", -57.29),
            *((-3.69, -6.24, -12.86), (-6.81, -10.09, -17.60)),
        ),
        _from_leaderboard(
            *("Mindrake", "HIPPO, bandit controller", -57.46),
            *((-3.73, -6.65, -12.86), (-6.85, -9.98, -17.39)),
        ),
        _from_leaderboard(
            *("Keeping it RL", "ensemble", -58.68),
            *((-3.62, -6.10, -11.90), (-6.57, -10.32, -20.16)),
        ),
        _from_leaderboard(
            *("CCS benchmark", "PPO of the organizers", -95.47),
            *((-8.75, -14.92, -30.19), (-7.31, -12.04, -22.21), (-0.01, -0.01, -0.03)),
        ),
        _from_leaderboard(
            *("CCS heuristic", "Blue React Restore; here restore-rotation", -823.89),
            *((-58.83, -93.05, -184.34), (-44.29, -85.75, -192.63), (-27.0, -46.0, -92.0)),
        ),
        _from_leaderboard(
            *("CCS random", "random actions", -2015.61),
            *((-154.06, -347.10, -726.92), (-33.43, -171.49, -566.41), (-2.80, -4.45, -8.94)),
        ),
        _from_leaderboard(
            *("CCS sleeper", "does nothing", -3112.20),
            *((-218.65, -480.17, -1134.03), (-39.31, -267.60, -972.43)),
        ),
        PublishedResult(
            name="Cardiff, measured",
            method="PPO + greedy decoys",
            source=f"{_CARDIFF} at 606813b, 200 episodes",
            how="measured, 200 episodes",
            total=-54.78,
            cells=_cells((-3.46, -6.41, -13.53), (-5.67, -8.91, -16.80)),
        ),
    ),
}

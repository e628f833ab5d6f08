"""The official protocol: 30, 50 and 100 steps against three reds, and what stands beside it.

A policy plays greedily and is not told how long a game is, as in CybORG's own evaluation; so the
three lengths are read off the same games.

The seeds of the games are apart from those of training: here each is a 64-bit number drawn from the
trial's seed and the red, in training each is a 32-bit one. They are apart from those of the checks
that choose the best policy, too, which are drawn from another seed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cagepool import _core
from cagepool.evaluate.baselines import PUBLISHED
from cagepool.evaluate.resolve import Contender
from cagepool.evaluate.rollout import Score, ScoreTable, Trial
from cagepool.evaluate.statistics import Engine, NativeEngine, Tally, tally
from cagepool.sim.names import HOSTS, OFFICIAL_REDS, action_name

FORMAT = 1
SEED = 153  # that of the leaderboard
EPISODES = 1000  # also
NO_HOST = "no host"  # of Sleep and Monitor


@dataclass(frozen=True)
class Evaluation:
    """What a contender did in the official games."""

    contender: Contender
    env: str
    table: ScoreTable
    tallies: dict[str, Tally]  # by red

    @property
    def trial(self) -> Trial:
        """What was played."""
        return self.table.trial

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, fit for JSON: the form of `evaluation.json`."""
        return {
            "format": FORMAT,
            **self.contender.as_dict(),
            "env": self.env,
            **self.table.as_dict(),
            "published": [row.as_dict() for row in PUBLISHED[self.trial.edition]],
            "loss": {red: tally.loss() for red, tally in self.tallies.items()},
            "actions": {red: _use_of_actions(tally) for red, tally in self.tallies.items()},
            "compliance": self._compliance(),
        }

    def _compliance(self) -> dict[str, Any] | None:
        kept = {red: tally.compliance() for red, tally in self.tallies.items()}
        return {"order": self.trial.order, **kept} if any(kept.values()) else None


def evaluate(
    contender: Contender,
    trial: Trial,
    engine: Engine | None = None,
    on_played: Callable[[int], None] = lambda _games: None,
) -> Evaluation:
    """Play a trial against the official reds; `on_played` is told how many more games are over.

    Raises:
        CybORGNotFoundError: the engine is CybORG's, which is not there.
        ValueError: CybORG is of another edition than the trial.
    """
    engine = engine or NativeEngine()
    tallies = {
        red: tally(contender.defender, trial, red, engine, on_played) for red in OFFICIAL_REDS
    }
    table = ScoreTable.of(trial, {red: of_red.totals for red, of_red in tallies.items()})
    return Evaluation(contender, engine.name, table, tallies)


@dataclass(frozen=True)
class Differences:
    """By how many standard errors of the difference one table is above another."""

    cells: dict[str, dict[int, float]]  # by red, then by length; infinite without any spread
    total: float

    def as_dict(self) -> dict[str, Any]:
        """The differences as plain values, fit for JSON, which knows no infinity."""
        cells = {
            red: {length: apart if np.isfinite(apart) else None for length, apart in row.items()}
            for red, row in self.cells.items()
        }
        return {"cells": cells, "total": self.total if np.isfinite(self.total) else None}


def differences(ours: ScoreTable, theirs: ScoreTable) -> Differences:
    """Compare two tables of all nine cells."""
    assert ours.total
    assert theirs.total
    cells = {
        red: {
            length: _difference(score, theirs.scores[red][length]) for length, score in row.items()
        }
        for red, row in ours.scores.items()
    }
    return Differences(cells, _difference(ours.total, theirs.total))


def _difference(ours: Score, theirs: Score) -> float:
    apart = ours.mean - theirs.mean
    error = float(np.hypot(ours.standard_error, theirs.standard_error))
    return apart / error if error else float(np.copysign(np.inf, apart)) if apart else 0.0


def _use_of_actions(tally: Tally) -> dict[str, Any]:
    """Mean uses in a game, kind by host."""
    places = [_kind_and_host(action) for action in range(_core.ACTION_COUNT)]
    kinds = list(dict.fromkeys(kind for kind, _ in places))
    columns = [*HOSTS, NO_HOST]
    counts = np.zeros((len(kinds), len(columns)))
    for (kind, host), uses in zip(places, tally.uses, strict=True):
        counts[kinds.index(kind), columns.index(host)] = uses / tally.episodes
    return {"kinds": kinds, "hosts": columns, "counts": counts.tolist()}


def _kind_and_host(action: int) -> tuple[str, str]:
    kind, _, host = action_name(action).partition(" ")
    return kind, host or NO_HOST

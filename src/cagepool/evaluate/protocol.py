"""The official protocol: 30, 50 and 100 steps against three reds, nine cells and their sum.

A policy plays greedily and does not know the length of a game, as in CybORG's own evaluation, so
the three lengths are read off the same games.

No game of an evaluation is a game of the training: an evaluation draws 64-bit seeds from the seed
of the trial and the red, a training draws 32-bit seeds. The periodic evaluations that choose the
best policy during training draw their seeds from another seed.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cagepool.evaluate.baselines import PUBLISHED
from cagepool.evaluate.defenders import Defender
from cagepool.evaluate.resolve import ResolvedPolicy
from cagepool.evaluate.rollout import (
    Engine,
    NativeEngine,
    OnProgress,
    Trial,
    episode_totals,
    ignore_progress,
)
from cagepool.evaluate.statistics import GameStatistics, ScoreTable, play_and_count
from cagepool.runs.schema import Differences, EvaluationFile, OrderCompliance, Score
from cagepool.sim.names import OFFICIAL_REDS, RED_ALIASES

SEED = 153  # of the leaderboard
EPISODES = 1000  # of the leaderboard, per cell


@dataclass(frozen=True)
class Evaluation:
    """Scores and statistics of a policy in the official games."""

    policy: ResolvedPolicy
    engine: str  # name of the engine
    table: ScoreTable
    statistics: dict[str, GameStatistics]  # by red

    @property
    def trial(self) -> Trial:
        """Settings of the games."""
        return self.table.trial

    def to_file(self, native: "Evaluation | None" = None) -> EvaluationFile:
        """The content of `evaluation.json`, which `runs.write_evaluation` writes.

        Args:
            native: Native games beside those of CybORG.
        """
        scores = self.table.to_record()
        return EvaluationFile(
            **{name: getattr(scores, name) for name in scores.__struct_fields__},
            name=self.policy.name,
            kind=self.policy.kind,
            checkpoint=self.policy.checkpoint,
            trained_on=self.policy.trained_on,
            env=self.engine,
            published=list(PUBLISHED[self.trial.edition]),
            loss={red: games.mean_loss() for red, games in self.statistics.items()},
            actions={red: games.mean_action_uses() for red, games in self.statistics.items()},
            compliance=self._compliance(),
            native=native.table.to_record() if native else None,
            differences=score_differences(self.table, native.table) if native else None,
        )

    def _compliance(self) -> dict[str, str | OrderCompliance] | None:
        if self.trial.order is None:
            return None
        by_red = {red: games.compliance() for red, games in self.statistics.items()}
        measured = {red: result for red, result in by_red.items() if result is not None}
        return {"order": self.trial.order, **measured}


def evaluate(
    policy: ResolvedPolicy,
    trial: Trial,
    engine: Engine | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Evaluation:
    """Play a trial against the official reds.

    Raises:
        CybORGNotFoundError: the engine is CybORG, which is not installed.
        ValueError: CybORG has another edition than the trial.
    """
    engine = engine or NativeEngine()
    statistics = {
        red: play_and_count(policy.defender, trial, red, engine, on_progress)
        for red in OFFICIAL_REDS
    }
    table = ScoreTable.from_totals(trial, {red: games.totals for red, games in statistics.items()})
    return Evaluation(policy, engine.name, table, statistics)


def score_table(
    defender: Defender,
    trial: Trial,
    red_agents: Iterable[str] = OFFICIAL_REDS,
    on_progress: OnProgress = ignore_progress,
) -> ScoreTable:
    """Play a trial natively against some reds and return its scores.

    Args:
        defender: Plays blue.
        trial: Settings of the games.
        red_agents: Class names or aliases.
        on_progress: Called with the number of games that have ended since the last call.

    Raises:
        ValueError: a red is unknown, or there is none.
    """
    totals = {
        red: episode_totals(defender, trial, red, on_progress)
        for red in official_red_names(red_agents)
    }
    return ScoreTable.from_totals(trial, totals)


def official_red_names(red_agents: Iterable[str]) -> tuple[str, ...]:
    """Class names of official red agents, without duplicates.

    Raises:
        ValueError: a red is not an official one, or there is none.
    """
    names = tuple(dict.fromkeys(RED_ALIASES.get(red, red) for red in red_agents))
    unknown = [name for name in names if name not in OFFICIAL_REDS]
    if unknown or not names:
        known = f"one or more of {', '.join(OFFICIAL_REDS)} (or {', '.join(RED_ALIASES)})"
        raise ValueError(f"red must be {known}; got {', '.join(map(repr, unknown)) or 'none'}")
    return names


def score_differences(first: ScoreTable, second: ScoreTable) -> Differences:
    """Differences of two tables of all nine cells, in standard errors of the difference.

    The deviation of the games is that of the second table, which must have many games: a few games
    of the first one would underestimate it. A difference without any deviation is infinite.
    """
    assert first.total
    assert second.total
    cells: dict[str, dict[int, float | None]] = {
        red: {
            length: _difference(score, second.scores[red][length]) for length, score in row.items()
        }
        for red, row in first.scores.items()
    }
    return Differences(cells=cells, total=_difference(first.total, second.total))


def _difference(first: Score, second: Score) -> float:
    difference = first.mean - second.mean
    deviation = second.standard_error * np.sqrt(second.episodes)
    error = float(deviation * np.sqrt(1 / first.episodes + 1 / second.episodes))
    if not error:
        return float(np.copysign(np.inf, difference)) if difference else 0.0
    return difference / error

"""One run of a study: train in stages between milestones, evaluate, and write `scores.json`.

A run that was stopped or killed at any point goes on to the same numbers: a milestone is written
before training continues, and training resumes exactly from its last checkpoint.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from cagepool import runs
from cagepool.evaluate.behavior import BehaviorRecorder
from cagepool.evaluate.policy import PolicyDefender
from cagepool.evaluate.rollout import Trial
from cagepool.evaluate.statistics import GameStatistics, ScoreTable, play_and_count
from cagepool.runs.study_schema import (
    SCORES,
    BehaviorCounts,
    FinalScores,
    MilestoneScores,
    ScoresFile,
    StudyProtocol,
)
from cagepool.sim.names import OFFICIAL_REDS
from cagepool.study.gradient import gradient_moments
from cagepool.study.statistics import cvar
from cagepool.train import runner
from cagepool.train.config import TrainConfig
from cagepool.train.evaluation import training_policy
from cagepool.train.logging import Row
from cagepool.types import Arrays, Float64s

CVAR_SHARE = 0.05


def play_run(
    run: runs.Run,
    protocol: StudyProtocol,
    on_episodes: Callable[[int], None] = lambda _episodes: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Train a run to its end and score it, from its start or from where it was stopped.

    Args:
        run: Run folder of the training.
        protocol: Milestones and evaluations.
        on_episodes: Called after each update with the number of episodes played.
        should_stop: Asked after each update.

    Returns:
        Whether the run is complete.

    Raises:
        ValueError: the run folder is damaged, another process trains the run, or its training
            failed.
    """
    config = TrainConfig.from_dict(run.settings)
    scores = read_scores(run)
    done = [milestone.percent for milestone in scores.milestones]
    for percent in (mark for mark in protocol.milestones if mark not in done):
        episodes = math.ceil(config.run.total_episodes * percent / 100)
        if not _train_until(run, episodes, on_episodes, should_stop):
            return False
        milestone = _score_milestone(run, config, protocol, percent)
        scores = ScoresFile(milestones=[*scores.milestones, milestone])
        runs.write_model(run.path / SCORES, scores)
    if not _train_until(run, config.run.total_episodes, on_episodes, should_stop):
        return False
    if not scores.final:
        editions = protocol.editions or [config.env.edition]
        final = {edition: _score_final(run, config, protocol, edition) for edition in editions}
        runs.write_model(run.path / SCORES, ScoresFile(milestones=scores.milestones, final=final))
    return True


def read_scores(run: runs.Run) -> ScoresFile:
    """Scores of a run so far.

    Raises:
        RunFileError: the file is damaged.
    """
    return runs.read_if_exists(run.path / SCORES, ScoresFile) or ScoresFile()


class _StageCallback:
    """Notes when a training has played the episodes of its stage."""

    def __init__(self, episodes: int, on_episodes: Callable[[int], None]) -> None:
        self._episodes = episodes
        self._on_episodes = on_episodes
        self.is_reached = False

    def on_update(self, row: Row) -> None:
        self._on_episodes(int(row["episodes"]))
        self.is_reached = row["episodes"] >= self._episodes

    def on_evaluation(self, _scores: Row) -> None:
        pass


def _train_until(
    run: runs.Run,
    episodes: int,
    on_episodes: Callable[[int], None],
    should_stop: Callable[[], bool],
) -> bool:
    """Train until so many episodes are played, or the training ends; returns whether it did."""
    if _has_played(run, episodes):
        return True
    stage = _StageCallback(episodes, on_episodes)
    is_finished = runner.train(run, stage, lambda: stage.is_reached or should_stop(), log=())
    return is_finished or stage.is_reached


def _has_played(run: runs.Run, episodes: int) -> bool:
    if not run.checkpoint_updates("last"):
        return False
    state = run.checkpoint("last").state
    is_last = episodes == run.settings["run"]["total_episodes"]
    return bool(state["finished"] or (state["episodes"] >= episodes and not is_last))


def _score_milestone(
    run: runs.Run, config: TrainConfig, protocol: StudyProtocol, percent: int
) -> MilestoneScores:
    checkpoint = run.checkpoint("last")
    state = checkpoint.state
    _, table = _play(checkpoint.arrays, config, _trial(config, protocol, config.env.edition))
    moments: dict[str, float] = {}
    if protocol.gradient_rollouts:
        moments = gradient_moments(config, checkpoint.arrays, protocol.gradient_rollouts)
    return MilestoneScores(
        percent=percent,
        episodes=state["episodes"],
        steps=state["steps"],
        seconds=state["progress"]["seconds"],
        total=_total(table),
        cells=_cells(table),
        **moments,
    )


def _score_final(
    run: runs.Run, config: TrainConfig, protocol: StudyProtocol, edition: str
) -> FinalScores:
    checkpoint = run.checkpoint(protocol.policy)
    counts: dict[str, BehaviorCounts] = {}
    trial = _trial(config, protocol, edition)
    games, table = _play(checkpoint.arrays, config, trial, counts)
    by_game = np.sum([_sums(games[red]) for red in OFFICIAL_REDS], axis=0)
    return FinalScores(
        update=checkpoint.state["update"],
        total=_total(table),
        cells=_cells(table),
        cvar={red: cvar(of_red.totals[:, -1], CVAR_SHARE) for red, of_red in games.items()},
        game_totals=np.round(by_game, 1).tolist(),
        loss={red: of_red.mean_loss() for red, of_red in games.items()},
        behavior=counts,
    )


def _trial(config: TrainConfig, protocol: StudyProtocol, edition: str) -> Trial:
    return Trial(
        episodes=protocol.episodes,
        edition=edition,
        green=config.env.green,
        seed=protocol.evaluation_seed,
    )


def _play(
    weights: Arrays,
    config: TrainConfig,
    trial: Trial,
    behavior: dict[str, BehaviorCounts] | None = None,
) -> tuple[dict[str, GameStatistics], ScoreTable]:
    """Play the official games; fills in `behavior` by red, if given."""
    games: dict[str, GameStatistics] = {}
    for red in OFFICIAL_REDS:
        defender: Any = PolicyDefender(training_policy(weights, config))
        if behavior is not None:
            defender = BehaviorRecorder(defender)
        games[red] = play_and_count(defender, trial, red)
        if behavior is not None:
            behavior[red] = defender.counts()
    totals = {red: of_red.totals for red, of_red in games.items()}
    return games, ScoreTable.from_totals(trial, totals)


def _sums(games: GameStatistics) -> Float64s:
    """Sum over the official lengths, by game."""
    sums: Float64s = games.totals.sum(axis=1)
    return sums


def _total(table: ScoreTable) -> float:
    assert table.total, "all nine cells were played"
    return table.total.mean


def _cells(table: ScoreTable) -> dict[str, list[float]]:
    return {
        red: [score.mean for score in by_length.values()] for red, by_length in table.scores.items()
    }

"""Evaluate a defender: play many games against red and score them."""

from cagepool.evaluate.protocol import Evaluation, evaluate, score_table
from cagepool.evaluate.rollout import Trial
from cagepool.evaluate.statistics import GameStatistics, ScoreTable
from cagepool.runs.schema import Score

__all__ = [
    "Evaluation",
    "GameStatistics",
    "Score",
    "ScoreTable",
    "Trial",
    "evaluate",
    "score_table",
]

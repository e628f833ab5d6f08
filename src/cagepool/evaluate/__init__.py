"""Evaluate a defender: play many games against red and score them."""

from cagepool.evaluate.defenders import Defender, scripted_defender
from cagepool.evaluate.protocol import score_table
from cagepool.evaluate.rollout import Trial
from cagepool.evaluate.statistics import ScoreTable
from cagepool.runs.schema import Score

__all__ = ["Defender", "Score", "ScoreTable", "Trial", "score_table", "scripted_defender"]

"""Play a defender against red and tell what it scored."""

from cagepool.evaluate.defenders import Defender, scripted_defender
from cagepool.evaluate.rollout import Score, ScoreTable, Trial, score_table

__all__ = ["Defender", "Score", "ScoreTable", "Trial", "score_table", "scripted_defender"]

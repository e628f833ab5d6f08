"""Play a defender against red and tell what it scored."""

from cagepool.evaluate.play import Score, ScoreTable, Trial, score_table
from cagepool.evaluate.scripted import Defender, scripted_defender

__all__ = ["Defender", "Score", "ScoreTable", "Trial", "score_table", "scripted_defender"]

"""Measuring: interleaved contenders, medians with their spread, JSON beside every claim."""

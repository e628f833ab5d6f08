"""The Python face of the core: games, their names, recordings."""

from cagepool.sim.batch import COUNTERS, Batch, BatchConfig

__all__ = ["COUNTERS", "Batch", "BatchConfig"]

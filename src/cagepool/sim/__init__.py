"""The Python face of the core: games, their names, recordings."""

from cagepool.sim.batch import COUNTERS, Batch, BatchConfig
from cagepool.sim.dictionary import true_state_dict
from cagepool.sim.masks import ActionMasks
from cagepool.sim.replay import replay
from cagepool.sim.true_state import TrueState

__all__ = [
    "COUNTERS",
    "ActionMasks",
    "Batch",
    "BatchConfig",
    "TrueState",
    "replay",
    "true_state_dict",
]

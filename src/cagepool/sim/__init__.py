"""The native simulator: batches of games, names, action masks, compliance and traces."""

from cagepool.sim.action_masks import ActionMasks, action_masks
from cagepool.sim.batch import COUNTERS, Batch, BatchConfig
from cagepool.sim.trace import replay
from cagepool.sim.true_state import TrueState

__all__ = [
    "COUNTERS",
    "ActionMasks",
    "Batch",
    "BatchConfig",
    "TrueState",
    "action_masks",
    "replay",
]

"""The native simulator: batches of games, names, action masks, compliance and traces."""

from cagepool.sim.action_masks import ActionMasks, action_masks
from cagepool.sim.batch import COUNTERS, Batch, BatchConfig
from cagepool.sim.belief import BELIEF_FEATURES, BeliefConfig, BeliefFilter
from cagepool.sim.trace import replay
from cagepool.sim.true_state import TrueState

__all__ = [
    "BELIEF_FEATURES",
    "COUNTERS",
    "ActionMasks",
    "Batch",
    "BatchConfig",
    "BeliefConfig",
    "BeliefFilter",
    "TrueState",
    "action_masks",
    "replay",
]

"""The native simulator: batches of games, names, action masks, compliance and traces."""

from cagepool.sim.batch import Batch, BatchConfig, TrueState
from cagepool.sim.belief import BELIEF_FEATURES, BeliefConfig, BeliefFilter
from cagepool.sim.compliance import COUNTERS
from cagepool.sim.encoder import FeatureConfig, FeatureEncoder
from cagepool.sim.graph import HOST_FEATURES, NODE_FEATURES, GraphSize, HostTables, host_tables
from cagepool.sim.masks import ActionMasks, action_masks
from cagepool.sim.red_observation import RedObservations, RedSpace, red_observations, red_space
from cagepool.sim.settings import GameSettings
from cagepool.sim.trace import replay

__all__ = [
    "BELIEF_FEATURES",
    "COUNTERS",
    "HOST_FEATURES",
    "NODE_FEATURES",
    "ActionMasks",
    "Batch",
    "BatchConfig",
    "BeliefConfig",
    "BeliefFilter",
    "FeatureConfig",
    "FeatureEncoder",
    "GameSettings",
    "GraphSize",
    "HostTables",
    "RedObservations",
    "RedSpace",
    "TrueState",
    "action_masks",
    "host_tables",
    "red_observations",
    "red_space",
    "replay",
]

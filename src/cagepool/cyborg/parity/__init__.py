"""Parity of CybORG and the native games: record one, replay it in the other, compare all fields."""

from cagepool.cyborg.parity.compare import Mismatch, replay_mismatches
from cagepool.cyborg.parity.fuzz_policies import FUZZ_POLICIES
from cagepool.cyborg.parity.lockstep import (
    REDS,
    Cell,
    CellResult,
    ParityConfig,
    ParityResult,
    parity_cells,
    run_parity,
)
from cagepool.cyborg.parity.recorder import RecordedEpisode, concatenate_traces, record_episode

__all__ = [
    "FUZZ_POLICIES",
    "REDS",
    "Cell",
    "CellResult",
    "Mismatch",
    "ParityConfig",
    "ParityResult",
    "RecordedEpisode",
    "concatenate_traces",
    "parity_cells",
    "record_episode",
    "replay_mismatches",
    "run_parity",
]

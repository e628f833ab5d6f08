"""Parity of CybORG and the native games: record one, replay it in the other, compare all fields."""

from cagepool.parity.fuzz_policies import FUZZ_POLICIES
from cagepool.parity.lockstep import (
    REDS,
    Cell,
    CellResult,
    Mismatch,
    ParityConfig,
    ParityResult,
    parity_cells,
    replay_mismatches,
    run_parity,
)
from cagepool.parity.recorder import RecordedEpisode, concatenate_traces, record_episode

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

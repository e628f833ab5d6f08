"""CybORG and the native games in lockstep: record one, replay by the other, compare every field."""

from cagepool.cyborg.parity.compare import Mismatch, mismatches
from cagepool.cyborg.parity.fuzz_policies import BLUES
from cagepool.cyborg.parity.lockstep import Cell, ParityResult, ParityTrial, Tally, cells, play
from cagepool.cyborg.parity.recorder import Recording, joined, record

__all__ = [
    "BLUES",
    "Cell",
    "Mismatch",
    "ParityResult",
    "ParityTrial",
    "Recording",
    "Tally",
    "cells",
    "joined",
    "mismatches",
    "play",
    "record",
]

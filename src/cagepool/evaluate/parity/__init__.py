"""CybORG and the native games in lockstep: record one, replay by the other, compare every field."""

from cagepool.evaluate.parity.blues import BLUES
from cagepool.evaluate.parity.compare import Mismatch, mismatches
from cagepool.evaluate.parity.recorder import Recording, joined, record
from cagepool.evaluate.parity.trial import Cell, ParityResult, ParityTrial, Tally, cells, play

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

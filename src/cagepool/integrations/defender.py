"""Policies of other libraries as defenders, to be scored by `cagepool.evaluate`."""

from typing import Protocol

import numpy as np

from cagepool.evaluate.defenders import GameBatch
from cagepool.sim.features import FeatureConfig, FeatureEncoder
from cagepool.types import Bytes, Float32s, Int64s

PLAIN = FeatureConfig(
    scan_memory=False, decoys_placed=False, last_action=False, time_left=False, actions="all"
)
"""The 52 values and all 145 actions."""


class Chooser(Protocol):
    """A policy that has no memory of its own."""

    def __call__(self, inputs: Float32s, masks: Bytes, /) -> Int64s:
        """One choice a game, from rows of inputs and of masks."""


class ChoosingDefender:
    """Lets a policy choose in many games, and remembers for it what its inputs are made of."""

    def __init__(self, choose: Chooser, inputs: FeatureConfig, *, max_steps: int) -> None:
        """Take a policy with the inputs and the horizon that it was trained with."""
        self._choose = choose
        self._config = inputs
        self._max_steps = max_steps

    def begin(self, batch: GameBatch) -> None:
        """Forget the past: an episode starts in every game of the batch."""
        self._inputs = FeatureEncoder(self._config, batch.games, horizon=self._max_steps)
        self._rows: Float32s = np.zeros((batch.games, self._inputs.size), np.float32)
        self._masks: Bytes = np.zeros((batch.games, self._inputs.n_choices), np.uint8)
        self._played: Int64s | None = None

    def act(self, batch: GameBatch) -> Int64s:
        """What the policy chooses in every game."""
        seen = np.ascontiguousarray(batch.observations, np.float32)
        if self._played is not None:
            self._inputs.update(self._played, seen)
        self._inputs.encode(seen, self._rows, self._masks)
        chosen = self._choose(self._rows, self._masks)
        self._played = self._inputs.action_indices[chosen]
        return self._played

"""Observation arrays that the caller may keep, without copying them."""

from sys import getrefcount

import numpy as np

from cagepool.sim.batch import Batch
from cagepool.types import Int64s


class Pages:
    """Two arrays that a batch writes in turn; one that somebody still holds is left to them."""

    def __init__(self, batch: Batch) -> None:
        """Let the batch go on in its own array until the first turn."""
        self._blank = np.empty_like(batch.observations)
        self._alone = getrefcount(self._blank)  # as long as nobody else has it

    def step(self, batch: Batch, actions: Int64s, red_actions: Int64s | None) -> int:
        """Step the batch, with the outcome on a blank page; returns how many episodes ended."""
        self._blank_for(batch)
        try:
            ended = batch.step(actions, red_actions)
        except BaseException:
            batch.core.redirect_observations(batch.observations)
            raise
        batch.observations, self._blank = self._blank, batch.observations
        return ended

    def turn(self, batch: Batch) -> None:
        """Go on on a page with the same observations, so that some of them can be overwritten."""
        self._blank_for(batch)
        np.copyto(self._blank, batch.observations)
        batch.observations, self._blank = self._blank, batch.observations

    def _blank_for(self, batch: Batch) -> None:
        if getrefcount(self._blank) > self._alone:
            self._blank = np.empty_like(self._blank)
        batch.core.redirect_observations(self._blank)

"""What infos say of episodes that have just ended, in the forms that Gymnasium gives them."""

from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from cagepool.sim.batch import Batch
from cagepool.types import Bools, Infos


def infos_of(batch: Batch, ended: Bools) -> Infos:
    """The infos of a step that ended these episodes, as SyncVectorEnv gives them for Cage2Env."""
    infos = {}
    if batch.config.order is not None:
        counters = np.where(ended[:, None], batch.episode_counters, 0)
        infos = {"compliance": counters, "_compliance": ended.copy()}
    if batch.config.autoreset != "same_step":
        return infos
    return {
        "final_obs": _final_observations(batch, ended),
        "_final_obs": ended.copy(),
        "final_info": infos,
        "_final_info": ended.copy(),
    }


def _final_observations(batch: Batch, ended: Bools) -> NDArray[np.object_]:
    observations = np.full(batch.games, None, object)
    rows = batch.final_observations[ended]
    observations[ended] = np.fromiter(rows, object, len(rows))
    return observations


class Statistics:
    """Return, length and seconds of episodes, as RecordEpisodeStatistics gives them."""

    def __init__(self, games: int) -> None:
        """Start all clocks."""
        self._began_s = np.full(games, perf_counter())

    def begin(self, games: Bools) -> None:
        """Start the clocks of these games anew."""
        self._began_s[games] = perf_counter()

    def infos_of(self, batch: Batch, ended: Bools) -> Infos:
        """The infos of a step that ended these episodes, whose clocks start anew."""
        episode = {
            "r": np.where(ended, batch.episode_returns, 0.0),
            "l": np.where(ended, batch.episode_lengths, np.int64(0)),
            "t": np.where(ended, np.round(perf_counter() - self._began_s, 6), 0.0),
        }
        self.begin(ended)
        return {"episode": episode, "_episode": ended.copy()}

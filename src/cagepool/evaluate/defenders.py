"""Defenders that follow a script (docs/rules.md, section 8), for many games at once."""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cagepool.evaluate.games import Games
from cagepool.sim.names import ACTIONS, HOSTS, action_index, host_index
from cagepool.types import Int64s

SLEEP = action_index("Sleep")
MONITOR = action_index("Monitor")
USER0 = host_index("User0")


class Defender(Protocol):
    """Whoever plays blue."""

    def begin(self, batch: Games, /) -> None:
        """Forget the past: an episode starts in every game of the batch."""

    def act(self, batch: Games, /) -> Int64s:
        """One action a game, after what the batch's arrays show of the last step."""


def scripted_defender(name: str) -> Defender:
    """A new defender of that name.

    Raises:
        ValueError: no scripted defender has that name.
    """
    if name not in SCRIPTED:
        raise ValueError(f"blue must be one of {', '.join(SCRIPTED)}; got {name!r}")
    return SCRIPTED[name]()


class SleepDefender:
    """Does nothing."""

    def begin(self, _batch: Games) -> None:
        """Nothing to forget."""

    def act(self, batch: Games) -> Int64s:
        """Sleep in every game."""
        return np.full(batch.games, SLEEP)


class RandomDefender:
    """Draws every action uniformly; what it draws in a game follows from that game's seed alone."""

    _STEP = np.uint64(0x9E3779B97F4A7C15)
    _APART = np.uint64(0xD1B54A32D192ED03)  # keeps its numbers apart from those of the game

    def begin(self, batch: Games) -> None:
        """Take up the random stream of each game's episode."""
        keys = [batch.stream_key(game) for game in range(batch.games)]
        self._counters = np.array(keys, np.uint64) ^ self._APART

    def act(self, _batch: Games) -> Int64s:
        """Any of the actions; biased by less than one in ten million."""
        self._counters += self._STEP
        words = _mixed(self._counters) >> np.uint64(32)
        return (words * np.uint64(len(ACTIONS)) >> np.uint64(32)).astype(np.int64)


class ReactDefender:
    """Monitors; cures a host, once, as soon as it has watched a detected exploit there.

    The rules give it a queue of hosts. It monitors only when the queue is empty, and a step can add
    one host at most, which it cures at once: no host waits for a later turn, and no queue is kept.
    """

    def __init__(self, cure: str) -> None:
        """Cure by `Remove` or by `Restore`."""
        self._cures = np.array([action_index(f"{cure} {host}") for host in HOSTS])

    def begin(self, batch: Games) -> None:
        """Have watched nothing yet."""
        self._watched = np.zeros(batch.games, np.bool_)

    def act(self, batch: Games) -> Int64s:
        """Cure where an exploit was seen, monitor elsewhere."""
        targets = batch.moves["red_target"]
        alarmed = self._watched & (batch.moves["detected"] == 1) & (targets != USER0)
        self._watched = ~alarmed
        return np.where(alarmed, self._cures[targets], MONITOR)


class RotationDefender:
    """Monitors once, then restores the hosts other than User0 in turn, over and over."""

    _ROUND = (MONITOR, *(action_index(f"Restore {h}") for h in HOSTS if h != "User0"))

    def begin(self, _batch: Games) -> None:
        """Start the first round."""
        self._turn = 0

    def act(self, batch: Games) -> Int64s:
        """The action whose turn it is, in every game."""
        action = self._ROUND[self._turn % len(self._ROUND)]
        self._turn += 1
        return np.full(batch.games, action)


SCRIPTED: dict[str, Callable[[], Defender]] = {
    "sleep": SleepDefender,
    "random": RandomDefender,
    "react-remove": lambda: ReactDefender("Remove"),
    "react-restore": lambda: ReactDefender("Restore"),
    "restore-rotation": RotationDefender,
}


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64, which makes random numbers out of a counter."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))

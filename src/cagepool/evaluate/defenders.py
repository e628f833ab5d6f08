"""Interface of a defender, and the scripted defenders (docs/rules.md, section 8)."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cagepool.sim.names import ACTIONS, HOSTS, action_index, host_index
from cagepool.types import Float64s, Int32s, Int64s, Records

SLEEP = action_index("Sleep")
MONITOR = action_index("Monitor")
USER0 = host_index("User0")


class GameBatch(Protocol):
    """Games that are stepped together: a `sim.Batch`, or games of CybORG.

    `step` writes the arrays in place.
    """

    @property
    def games(self) -> int:
        """Number of games."""

    @property
    def observations(self) -> NDArray[Any]:
        """Observations of blue, (games, OBSERVATION_SIZE)."""

    @property
    def rewards(self) -> Float64s:
        """Rewards of the last step, (games,)."""

    @property
    def moves(self) -> Records:
        """Actions of all agents in the last step, (games,), fields of `dtypes.MOVES`."""

    @property
    def true_state(self) -> Records:
        """True state after the last step, (games,), fields of `dtypes.TRUE_STATE`."""

    @property
    def counters(self) -> Int32s:
        """Compliance counters of the episodes, (games, COUNTER_COUNT); no rows without an order."""

    def step(self, actions: Int64s, /) -> object:
        """Play one action in every game."""

    def stream_key(self, game: int, /) -> int:
        """A number that determines all random draws of a game."""


class Defender(Protocol):
    """Plays blue in many games."""

    def begin(self, batch: GameBatch, /) -> None:
        """Reset the memory: an episode starts in every game of the batch."""

    def act(self, batch: GameBatch, /) -> Int64s:
        """Choose one action per game from the arrays of the batch after the last step."""


def scripted_defender(name: str) -> Defender:
    """A new scripted defender.

    Raises:
        ValueError: no scripted defender has that name.
    """
    if name not in SCRIPTED:
        raise ValueError(f"blue must be one of {', '.join(SCRIPTED)}; got {name!r}")
    return SCRIPTED[name]()


class SleepDefender:
    """Sleeps in every step."""

    def begin(self, _batch: GameBatch) -> None:
        """Do nothing: there is no memory."""

    def act(self, batch: GameBatch) -> Int64s:
        """Sleep in every game."""
        return np.full(batch.games, SLEEP)


class RandomDefender:
    """Draws actions uniformly; the actions of a game depend on the seed of that game alone."""

    _INCREMENT = np.uint64(0x9E3779B97F4A7C15)
    _STREAM = np.uint64(0xD1B54A32D192ED03)  # separates its random numbers from those of the game

    def begin(self, batch: GameBatch) -> None:
        """Seed one random stream per game."""
        keys = [batch.stream_key(game) for game in range(batch.games)]
        self._counters = np.array(keys, np.uint64) ^ self._STREAM

    def act(self, _batch: GameBatch) -> Int64s:
        """Draw an action per game; the bias is below one in ten million."""
        self._counters += self._INCREMENT
        words = _splitmix64(self._counters) >> np.uint64(32)
        return (words * np.uint64(len(ACTIONS)) >> np.uint64(32)).astype(np.int64)


class ReactDefender:
    """Monitors; in the step after a detected exploit it removes red from, or restores, that host.

    The rules give this defender a queue of hosts. It monitors only while the queue is empty, and a
    step adds at most one host, which is dealt with in the next step: the queue never holds more
    than one host and is not stored.
    """

    def __init__(self, response: str) -> None:
        """Respond with `Remove` or with `Restore`."""
        self._responses = np.array([action_index(f"{response} {host}") for host in HOSTS])

    def begin(self, batch: GameBatch) -> None:
        """Reset the memory: no game was monitored yet."""
        self._monitored = np.zeros(batch.games, np.bool_)

    def act(self, batch: GameBatch) -> Int64s:
        """Respond where an exploit was detected while monitoring, monitor elsewhere."""
        targets = batch.moves["red_target"]
        alarmed = self._monitored & (batch.moves["detected"] == 1) & (targets != USER0)
        self._monitored = ~alarmed
        return np.where(alarmed, self._responses[targets], MONITOR)


class RotationDefender:
    """Repeats one cycle: Monitor, then Restore on every host except User0."""

    _CYCLE = (MONITOR, *(action_index(f"Restore {host}") for host in HOSTS if host != "User0"))

    def begin(self, _batch: GameBatch) -> None:
        """Start at the beginning of the cycle."""
        self._step = 0

    def act(self, batch: GameBatch) -> Int64s:
        """The next action of the cycle, in every game."""
        action = self._CYCLE[self._step % len(self._CYCLE)]
        self._step += 1
        return np.full(batch.games, action)


SCRIPTED: dict[str, Callable[[], Defender]] = {
    "sleep": SleepDefender,
    "random": RandomDefender,
    "react-remove": lambda: ReactDefender("Remove"),
    "react-restore": lambda: ReactDefender("Restore"),
    "restore-rotation": RotationDefender,
}


def _splitmix64(counters: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Random numbers from counters: the finalizer of SplitMix64."""
    words = (counters ^ (counters >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))

"""Interface of a defender, and the scripted defenders (docs/rules.md, section 8)."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cagepool.scenarios import Layout, Scenario
from cagepool.sim.slots import ScenarioIds, action_table
from cagepool.types import Bools, Float64s, Int32s, Int64s, Records

USER0 = "User0"


class GameBatch(Protocol):
    """Games that are stepped together: a `sim.Batch`, or games of CybORG.

    `step` writes the arrays in place.
    """

    @property
    def games(self) -> int:
        """Number of games."""

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """Networks that the games play."""

    @property
    def scenario_ids(self) -> ScenarioIds:
        """Number of each game's network, (games,)."""

    @property
    def layout(self) -> Layout:
        """Slots of the observations, and kinds of the actions."""

    @property
    def observations(self) -> NDArray[Any]:
        """Observations of blue, (games, 4 values per slot)."""

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

    def begin(self, batch: GameBatch) -> None:
        """Find the action in the layout of the games."""
        self._sleep = _first_action(batch, "Sleep", "sleep")

    def act(self, batch: GameBatch) -> Int64s:
        """Sleep in every game."""
        return np.full(batch.games, self._sleep)


class RandomDefender:
    """Draws actions uniformly; the actions of a game depend on the seed of that game alone."""

    _INCREMENT = np.uint64(0x9E3779B97F4A7C15)
    _STREAM = np.uint64(0xD1B54A32D192ED03)  # separates its random numbers from those of the game

    def begin(self, batch: GameBatch) -> None:
        """Seed one random stream per game."""
        keys = [batch.stream_key(game) for game in range(batch.games)]
        self._counters = np.array(keys, np.uint64) ^ self._STREAM
        self._actions = np.uint64(len(action_table(batch.layout)))

    def act(self, _batch: GameBatch) -> Int64s:
        """Draw an action per game; the bias is below one in ten million."""
        self._counters += self._INCREMENT
        words = _splitmix64(self._counters) >> np.uint64(32)
        return (words * self._actions >> np.uint64(32)).astype(np.int64)


class ReactDefender:
    """Monitors; in the step after a detected exploit it removes red from, or restores, that host.

    The rules give this defender a queue of hosts. It monitors only while the queue is empty, and a
    step adds at most one host, which is dealt with in the next step: the queue never holds more
    than one host and is not stored.
    """

    def __init__(self, response: str) -> None:
        """Respond with `Remove` or with `Restore`."""
        self._response = response

    def begin(self, batch: GameBatch) -> None:
        """Reset the memory: no game was monitored yet."""
        self._monitor = _first_action(batch, "Monitor", "react")
        first = _first_action(batch, self._response, "react")
        most = max(len(scenario.hosts) for scenario in batch.scenarios)
        # Response by scenario and host; -1: the host is ignored.
        self._responses = np.full((len(batch.scenarios), most), -1)
        for row, scenario in zip(self._responses, batch.scenarios, strict=True):
            watched = np.flatnonzero(_watched_hosts(scenario))
            row[watched] = first + scenario.slots(batch.layout)[watched]
        self._monitored = np.zeros(batch.games, np.bool_)

    def act(self, batch: GameBatch) -> Int64s:
        """Respond where an exploit was detected while monitoring, monitor elsewhere."""
        detected = self._monitored & (batch.moves["detected"] == 1)
        targets = np.where(detected, batch.moves["red_target"], 0)
        responses: Int64s = self._responses[batch.scenario_ids, targets]
        alarmed = detected & (responses >= 0)
        self._monitored = ~alarmed
        return np.where(alarmed, responses, self._monitor)


class RotationDefender:
    """Repeats one cycle: Monitor, then Restore on every host except User0."""

    def begin(self, batch: GameBatch) -> None:
        """Start at the beginning of the cycle."""
        monitor = _first_action(batch, "Monitor", "restore-rotation")
        first = _first_action(batch, "Restore", "restore-rotation")
        self._cycles = [
            np.array([monitor, *(first + slots[[name != USER0 for name in scenario.hosts]])])
            for scenario in batch.scenarios
            for slots in [scenario.slots(batch.layout)]
        ]
        self._step = 0

    def act(self, batch: GameBatch) -> Int64s:
        """The next action of the cycle of each game's network."""
        actions = np.array([cycle[self._step % len(cycle)] for cycle in self._cycles])
        self._step += 1
        return actions[batch.scenario_ids]


SCRIPTED: dict[str, Callable[[], Defender]] = {
    "sleep": SleepDefender,
    "random": RandomDefender,
    "react-remove": lambda: ReactDefender("Remove"),
    "react-restore": lambda: ReactDefender("Restore"),
    "restore-rotation": RotationDefender,
}


def _first_action(batch: GameBatch, kind: str, defender: str) -> int:
    """Index of the only action of a kind, or of the one on the first slot.

    Raises:
        ValueError: blue does not have it in all networks of the games.
    """
    for scenario in batch.scenarios:
        if kind not in scenario.action_kinds:
            raise ValueError(
                f"the defender {defender} needs {kind}, {scenario.name} has no such action"
            )
    return action_table(batch.layout).first[kind]


def _watched_hosts(scenario: Scenario) -> Bools:
    """Hosts whose alarms the reacting defenders see and answer (docs/scenarios.md, section 8)."""
    is_user0 = np.array([name == USER0 for name in scenario.hosts])
    watched: Bools = ~is_user0 & np.array(scenario.monitored)
    return watched


def _splitmix64(counters: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Random numbers from counters: the finalizer of SplitMix64."""
    words = (counters ^ (counters >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))

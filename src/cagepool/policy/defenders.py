"""Interface of a defender; scripted defenders (docs/rules.md, section 8); functions of a user."""

from collections.abc import Callable
from inspect import Parameter, isclass, signature
from pathlib import Path
from typing import Any, Literal, Never, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cagepool.scenarios import Layout, Scenario
from cagepool.sim.encoder import GameScenarios, ScenarioGames, is_cage2
from cagepool.sim.masks import ActionMasks, action_table, mask_tables
from cagepool.sim.settings import Definition, Knowledge, SharedSettings
from cagepool.types import Arrays, Bools, Float64s, Int32s, Int64s, Records

USER0 = "User0"


class GameBatch(ScenarioGames, Protocol):
    """Games that are stepped together: a `sim.Batch`, or games of CybORG.

    `step` writes the arrays in place.
    """

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


def game_scenarios(games: int | ScenarioGames) -> GameScenarios:
    """The scenarios of games; a number is that of games of CAGE-2."""
    if isinstance(games, int):
        return GameScenarios.of_cage2(games)
    return GameScenarios(games.scenarios, games.layout, games.scenario_ids)


def cage2_games(games: int | ScenarioGames, name: str) -> int:
    """Number of the games."""
    if isinstance(games, int) or is_cage2(games):
        return games if isinstance(games, int) else games.games
    raise ValueError(
        f"{name} is a policy of CAGE-2, which plays no other scenario, got "
        f"{games.scenarios[0].name}; --network entity trains one that does"
    )


class Defender:
    """Plays blue in many games: base class of everything that `cagepool.policy.load` returns.

    Call `begin` when all games start, `act` at every step, `record` if other actions were played
    than `act` returned, and `reset` with the games that start again. Defenders without a memory
    implement `act` alone.
    """

    name: str = "defender"
    kind: Literal["scripted", "policy"] = "policy"
    run: Path | None = None
    """Run folder; none for policies from elsewhere."""
    checkpoint: str | None = None
    """Such as best-000120."""
    layout: Layout | None = None
    """Host slots and actions that the games must have; none: those of their scenarios."""
    trained_on: str | None = None
    """Edition of the training."""
    scenario: str | None = None
    """Scenarios of the training; none: that of CAGE-2."""
    reward: str | None = None
    """Reward function of the training; none: the official reward."""
    order: str | None = None
    """Workflow order of the training."""
    knowledge: Knowledge = SharedSettings.knowledge
    """Of compliance in the training."""
    definition: Definition = SharedSettings.definition
    """Of compliance in the training."""

    @property
    def edition(self) -> str:
        """Edition to play if the user asks for none: that of the training, else the current one."""
        return self.trained_on or SharedSettings.edition

    def __getattr__(self, name: str) -> Never:
        """Say why an attribute that `begin` makes is missing."""
        is_own = name.startswith("_") and not name.startswith("__")
        reason = ": begin must be called before act" if is_own else ""
        raise AttributeError(f"{type(self).__name__} has no attribute {name}{reason}")

    def begin(self, games: int | GameBatch, /) -> None:
        """Start an episode in every game of a batch, or in this many games of CAGE-2.

        Raises:
            ValueError: the defender cannot play these games.
        """

    def act(self, observations: ArrayLike, /) -> Int64s:
        """Choose one action per game, (games,), from the observations, (games, values)."""
        raise NotImplementedError

    def record(self, actions: ArrayLike, /) -> None:
        """Replace the actions that `act` returned last by those that were played, (games,)."""

    def reset(self, ids: ArrayLike, /) -> None:
        """Start an episode in these games; `act` gets their first observations next."""

    def state(self) -> Arrays:
        """Memory of all games, for `restore`."""
        return {}

    def restore(self, state: Arrays, /) -> None:
        """Continue from what `state` returned, in the same number of games.

        Raises:
            ValueError: the state is of other games or of another defender.
        """


def scripted_defender(name: str) -> Defender:
    """A new scripted defender.

    Raises:
        ValueError: no scripted defender has that name.
    """
    if name not in SCRIPTED:
        raise ValueError(f"blue must be one of {', '.join(SCRIPTED)}; got {name!r}")
    defender = SCRIPTED[name]()
    defender.name = name
    return defender


class ScriptedDefender(Defender):
    """A defender whose memory is one number per game."""

    kind = "scripted"
    _memory: NDArray[Any]  # (games,)

    def reset(self, ids: ArrayLike) -> None:
        """Forget these games."""
        self._memory[np.asarray(ids, np.int64)] = 0

    def state(self) -> Arrays:
        """Memory of all games."""
        return {"memory": self._memory.copy()}

    def restore(self, state: Arrays) -> None:
        """Continue from what `state` returned."""
        saved = state.get("memory")
        if saved is None or saved.shape != self._memory.shape:
            raise ValueError(f"a saved state must be of {len(self._memory)} games of {self.name}")
        self._memory = saved.copy()


class SleepDefender(ScriptedDefender):
    """Sleeps in every step."""

    def begin(self, games: int | GameBatch) -> None:
        """Find the action in the layout of the games."""
        known = game_scenarios(games)
        self._memory = np.zeros(known.games, np.bool_)
        self._sleep = _first_action(known, "Sleep", self.name)

    def act(self, _observations: ArrayLike) -> Int64s:
        """Sleep in every game."""
        return np.full(len(self._memory), self._sleep)


class RandomDefender(ScriptedDefender):
    """Draws actions uniformly; the actions of a game depend on the seed of that game alone."""

    _INCREMENT = np.uint64(0x9E3779B97F4A7C15)
    _STREAM = np.uint64(0xD1B54A32D192ED03)  # separates its random numbers from those of the game

    def begin(self, games: int | GameBatch) -> None:
        """Seed one random stream per game: by the game's seed, or by its number."""
        known = game_scenarios(games)
        numbers = range(known.games)
        keys = numbers if isinstance(games, int) else [games.stream_key(game) for game in numbers]
        self._memory = np.array(keys, np.uint64) ^ self._STREAM
        self._actions = np.uint64(len(action_table(known.layout)))

    def reset(self, ids: ArrayLike) -> None:
        """Do nothing: the streams go on."""

    def act(self, _observations: ArrayLike) -> Int64s:
        """Draw an action per game; the bias is below one in ten million."""
        self._memory += self._INCREMENT
        words = _splitmix64(self._memory) >> np.uint64(32)
        return (words * self._actions >> np.uint64(32)).astype(np.int64)


class ReactDefender(ScriptedDefender):
    """Monitors; in the step after a detected exploit it removes red from, or restores, that host.

    The rules give this defender a queue of hosts. It monitors only while the queue is empty, and a
    step adds at most one host, which is dealt with in the next step: the queue never holds more
    than one host and is not stored. Alarms are in the moves of a batch, not in observations.
    """

    def __init__(self, response: str) -> None:
        """Respond with `Remove` or with `Restore`."""
        self._response = response

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the batch: a copy plays after `begin` with a batch, and `restore`."""
        return {name: value for name, value in vars(self).items() if name != "_batch"}

    def begin(self, games: int | GameBatch) -> None:
        """Reset the memory: no game was monitored yet."""
        if isinstance(games, int):
            raise ValueError(f"the defender {self.name} needs a batch of games, got {games}")
        self._batch = games
        self._monitor = _first_action(games, "Monitor", "react")
        first = _first_action(games, self._response, "react")
        most = max(len(scenario.hosts) for scenario in games.scenarios)
        # Response by scenario and host; -1: the host is ignored.
        self._responses = np.full((len(games.scenarios), most), -1)
        for row, scenario in zip(self._responses, games.scenarios, strict=True):
            watched = np.flatnonzero(_watched_hosts(scenario))
            row[watched] = first + scenario.slots(games.layout)[watched]
        self._memory = np.zeros(games.games, np.bool_)  # whether the last action was Monitor

    def act(self, _observations: ArrayLike) -> Int64s:
        """Respond where an exploit was detected while monitoring, monitor elsewhere."""
        moves = self._batch.moves
        detected = self._memory & (moves["detected"] == 1)
        targets = np.where(detected, moves["red_target"], 0)
        responses: Int64s = self._responses[self._batch.scenario_ids, targets]
        actions = np.where(detected & (responses >= 0), responses, self._monitor)
        self.record(actions)
        return actions

    def record(self, actions: ArrayLike) -> None:
        """Only Monitor raises alarms."""
        self._memory = np.asarray(actions) == self._monitor


class RotationDefender(ScriptedDefender):
    """Repeats one cycle: Monitor, then Restore on every host except User0."""

    def begin(self, games: int | GameBatch) -> None:
        """Start at the beginning of the cycle."""
        known = game_scenarios(games)
        monitor = _first_action(known, "Monitor", "restore-rotation")
        first = _first_action(known, "Restore", "restore-rotation")
        cycles = [
            np.array([monitor, *(first + slots[[name != USER0 for name in scenario.hosts]])])
            for scenario in known.scenarios
            for slots in [scenario.slots(known.layout)]
        ]
        self._lengths = np.array([len(cycle) for cycle in cycles])
        self._cycles = np.array([np.resize(cycle, self._lengths.max()) for cycle in cycles])
        self._ids = known.scenario_ids
        self._memory = np.zeros(known.games, np.int64)  # steps played

    def act(self, _observations: ArrayLike) -> Int64s:
        """The next action of the cycle of each game's scenario."""
        ids = self._ids
        actions: Int64s = self._cycles[ids, self._memory % self._lengths[ids]]
        self._memory += 1
        return actions


SCRIPTED: dict[str, Callable[[], Defender]] = {
    "sleep": SleepDefender,
    "random": RandomDefender,
    "react-remove": lambda: ReactDefender("Remove"),
    "react-restore": lambda: ReactDefender("Restore"),
    "restore-rotation": RotationDefender,
}


def _first_action(games: ScenarioGames, kind: str, defender: str) -> int:
    """Index of the only action of a kind, or of the one on the first slot."""
    for scenario in games.scenarios:
        if kind not in scenario.action_kinds:
            raise ValueError(
                f"the defender {defender} needs {kind}, {scenario.name} has no such action"
            )
    return action_table(games.layout).first[kind]


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


class FunctionDefender(Defender):
    """Plays `policy(observations)` or `policy(observations, action_masks)`.

    Observations are float32, (games, 4 values per host); action masks are Booleans, (games,
    actions): false where a decoy can't be placed. In CAGE-2 these are 52 values and 145 actions.
    The policy returns one action per game, (games,), or one score per game and action, of which
    the greatest is played. A policy with memory also has `reset(mask)`: an episode starts in the
    games of the Boolean mask, (games,); the number of games changes between calls where all start.
    It may have `record`, `state` and `restore` as a `Defender` has them.
    """

    def __init__(self, policy: Callable[..., ArrayLike], name: str) -> None:
        """Play a policy, which is called by this name in error messages."""
        self.name = name
        self._policy = policy
        self._takes_masks = takes_masks(policy)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the batch: a copy plays after `begin`."""
        return {name: value for name, value in vars(self).items() if name != "_batch"}

    def begin(self, games: int | GameBatch) -> None:
        """Start an episode in every game."""
        self._games = game_scenarios(games)
        self._actions = len(action_table(self._games.layout))
        self._batch = None if isinstance(games, int) else games
        self._masks = ActionMasks(games) if isinstance(games, int) else None
        self._last_actions: Int64s | None = None
        self.reset(np.arange(self._games.games))

    def act(self, observations: ArrayLike) -> Int64s:
        """The action of the policy in every game."""
        rows = np.array(observations, np.float32)  # a copy, which the policy may keep
        masks = (self._action_masks(),) if self._takes_masks else ()
        output = self._call(self._policy, rows, *masks)
        self._last_actions = _as_actions(output, (len(rows), self._actions), self.name)
        return self._last_actions

    def record(self, actions: ArrayLike) -> None:
        """Replace the last actions."""
        self._last_actions = np.array(actions, np.int64)
        if record := getattr(self._policy, "record", None):
            self._call(record, self._last_actions)

    def reset(self, ids: ArrayLike) -> None:
        """Start an episode in these games."""
        self._track_actions()
        starts = np.zeros(self._games.games, np.bool_)
        starts[np.asarray(ids, np.int64)] = True
        if self._masks is not None:
            self._masks.reset(np.flatnonzero(starts))
        if reset := getattr(self._policy, "reset", None):
            self._call(reset, starts)

    def state(self) -> Arrays:
        """Memory of the policy, and the decoys that it has placed."""
        self._track_actions()
        placed = {} if self._masks is None else {"decoys": self._masks.decoys.copy()}
        own = getattr(self._policy, "state", None)
        return placed | (self._call(own) if own else {})

    def restore(self, state: Arrays) -> None:
        """Continue from what `state` returned."""
        self._last_actions = None
        if self._masks is not None:
            self._masks.decoys[:] = state["decoys"]
        if restore := getattr(self._policy, "restore", None):
            self._call(restore, {name: state[name] for name in state if name != "decoys"})

    def _action_masks(self) -> Bools:
        """Masks by the decoys of the batch, else by the actions so far."""
        if self._masks is None:
            games = self._batch
            if games is None:
                raise ValueError(f"the copy of {self.name} must begin with a batch of games")
            tables = mask_tables(games.scenarios, games.layout)
            return tables.masks(games.true_state["decoys"], games.scenario_ids)
        self._track_actions()
        return self._masks.masks

    def _track_actions(self) -> None:
        """Place the decoys of the last actions."""
        if self._masks is not None and self._last_actions is not None:
            self._masks.update(self._last_actions)
        self._last_actions = None

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:
            # As a ValueError, an error in the policy would look like a wrong command line.
            raise RuntimeError(f"the policy {self.name} raised {type(error).__name__}") from error


def as_defender(found: Any, name: str) -> Defender:
    """The object that a user names, as a defender; a class is instantiated first.

    Args:
        found: A `Defender`, such as `cagepool.load` returns, or a function (`FunctionDefender`).
        name: Its name, for error messages.
    """
    policy = found() if isclass(found) else found
    if isinstance(policy, Defender):
        return policy
    if not callable(policy):
        raise ValueError(
            f"a policy must be a function of observations or a cagepool.policy.Defender, {name} is "
            f"a {type(policy).__name__}"
        )
    return FunctionDefender(policy, name)


def takes_masks(policy: Callable[..., Any]) -> bool:
    """Whether a policy has a second parameter for action masks: required, or of that name."""
    try:
        parameters = [*signature(policy).parameters.values()][1:2]
    except (TypeError, ValueError):  # functions written in C may have no signature
        return False
    return any(
        parameter.name == "action_masks"
        or (
            parameter.default is Parameter.empty
            and parameter.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        )
        for parameter in parameters
    )


def _as_actions(output: ArrayLike, shape: tuple[int, int], name: str) -> Int64s:
    """Actions, (games,), from what a policy returned: actions, or scores of all actions."""
    values = np.asarray(output)
    games, actions = shape
    if values.shape == shape and values.dtype.kind == "f":
        scores: Int64s = values.argmax(1)
        return scores
    if values.shape != (games,) or values.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must return integers of shape ({games},) or scores of shape {shape}, "
            f"got {values.dtype} of shape {values.shape}"
        )
    if values.min() < 0 or values.max() >= actions:
        raise ValueError(
            f"{name} must return actions from 0 to {actions - 1}, "
            f"got {values.min()} to {values.max()}"
        )
    return values.astype(np.int64)

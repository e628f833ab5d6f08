"""A batch of native games, and the arrays that the core writes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cagepool import _core
from cagepool._machine import usable_cores
from cagepool.errors import short_repr
from cagepool.scenarios import Layout, Scenario
from cagepool.sim import dtypes
from cagepool.sim.compliance import order_number
from cagepool.sim.masks import MaskTables, mask_tables
from cagepool.sim.names import (
    ScenarioNames,
    edition_code,
    red_bitmask,
    red_class_names,
    red_shares,
    scenario_names,
)
from cagepool.sim.scenario_tables import CoreBatchClass, core_batch, core_scenarios
from cagepool.sim.settings import (
    DEFINITIONS,
    GAME_SETTINGS,
    KNOWLEDGE,
    GameSettings,
    check_choice,
)
from cagepool.types import Arrays, Bools, Bytes, Float64s, Int32s, Int64s, Records, Seeds

T = TypeVar("T")

AUTORESET = {
    "next_step": _core.Autoreset.NEXT_STEP,
    "same_step": _core.Autoreset.SAME_STEP,
    "disabled": _core.Autoreset.DISABLED,
}
# With fewer games per thread, synchronization costs more than a thread saves
# (benchmarks/results/engine.json).
GAMES_PER_THREAD = 2048


@dataclass(frozen=True, kw_only=True)
class BatchConfig(GameSettings):
    """Settings of the games of a batch; a sequence has one value per game."""

    autoreset: Literal["next_step", "same_step", "disabled"] = "next_step"
    """When a finished game is reset, as in `gymnasium.vector.AutoresetMode`."""
    observation_dtype: DTypeLike = "float32"
    """NumPy type of observations: float32 or uint8."""
    threads: int = 0
    """Threads that step games; 0: chosen by the number of games and cores."""

    def __post_init__(self) -> None:
        """Check the settings that do not depend on the number of games."""
        super().__post_init__()
        check_choice("autoreset", self.autoreset, AUTORESET)
        _check_dtype(self.observation_dtype)
        if not _is_integer(self.threads) or self.threads < 0:
            wanted = "a whole number of at least 1, or 0 to choose"
            raise ValueError(f"threads must be {wanted}, got {short_repr(self.threads)}")

    @classmethod
    def of(cls, game: GameSettings, **changes: Any) -> Self:
        """Settings of a batch with the games of others, except for the changes."""
        return cls(**{name: getattr(game, name) for name in GAME_SETTINGS} | changes)


class Batch:
    """N games that are stepped together.

    Every call of `step` overwrites the arrays below. `step` is the core's own method:
    `step(actions, red_actions=None, ids=None)` takes int64 arrays and returns the number of
    episodes that ended.
    """

    observations: NDArray[Any]  # (games, 4 * slots of `layout`)
    final_observations: NDArray[Any]  # of the episodes that ended in this step; same_step only
    final_true_state: Records  # the same of the true state
    rewards: Float64s  # (games,)
    truncations: Bools  # (games,)
    moves: Records  # (games,), actions of blue, green and red in the last step
    true_state: Records  # (games,), fields of dtypes.TRUE_STATE; read-only
    scenario_ids: NDArray[np.integer]  # (games,), scenario of each game in `scenarios`; read-only
    episode_returns: Float64s  # (games,), of the last episode that ended
    episode_lengths: Int32s  # (games,)
    counters: Int32s  # (games, 5), see COUNTERS; read-only; no rows without an order
    episode_counters: Int32s  # of the last episode that ended
    alignment: Float64s  # (games,), alignment reward of the last step
    orders: Bytes  # (games,), order numbers below 120; may be written right after a reset

    def __init__(self, games: int, config: BatchConfig | None = None) -> None:
        """Create the games; they must be reset before the first step.

        Raises:
            TypeError: the number of games is not an integer, or a name is not a string.
            ValueError: a setting is unknown or out of range.
        """
        config = config or BatchConfig()
        if not _is_integer(games):
            raise TypeError(f"the number of games must be an integer, got {short_repr(games)}")
        if games < 1:
            raise ValueError(f"a batch must have at least 1 game, got {games}")
        self.config = config
        self.games = int(games)
        self.scenarios = config.scenarios
        self.layout = config.layout or Layout.of(self.scenarios)
        configs = _game_configs(self.games, config)
        core_class = core_batch(self.scenarios, self.layout)
        outputs = _allocate_outputs(self.games, config, self.layout, core_class)
        structs = {
            "moves": dtypes.MOVES,
            "true_state": _true_state_struct(self.scenarios, core_class),
        }
        for name, array in outputs.items():
            struct = structs.get(name.removeprefix("final_"))
            setattr(self, name, array if struct is None else array.view(struct).reshape(-1))
        self.counters = self.counters[:]
        self.scenario_ids = self.true_state["scenario"]
        for state in (self.true_state, self.counters, self.scenario_ids):  # views of `outputs`
            state.flags.writeable = False
        if config.order is not None:
            self.orders[:] = _names_per_game("order", config.order, self.games, order_number)
        threads = int(config.threads) or _useful_threads(self.games)
        _check_reds(config, self.games)
        self.core = core_class(
            **core_scenarios(self.scenarios, self.layout, config.definition),
            draws_scenarios=config.scenario_per == "episode",
            configs=dtypes.as_bytes(configs),
            outputs=outputs,
            autoreset=AUTORESET[config.autoreset],
            knowledge=KNOWLEDGE[config.knowledge],
            definition=DEFINITIONS[config.definition],
            alignment_lambda=config.alignment,
            threads=threads,
        )
        self.step = self.core.step
        self.stream_key = self.core.stream_key

    @cached_property
    def names(self) -> ScenarioNames:
        """Names of hosts, actions and targets in the games."""
        return scenario_names(self.scenarios, self.layout)

    @cached_property
    def mask_tables(self) -> MaskTables:
        """What decides the action masks of the games."""
        return mask_tables(self.scenarios, self.layout)

    @property
    def move_scenario_ids(self) -> NDArray[np.integer]:
        """Scenario of each game in the step of `moves`.

        An autoreset in the same step may have begun a game of another scenario.
        """
        if self.config.autoreset != "same_step" or len(self.scenarios) == 1:
            return self.scenario_ids
        return np.where(self.truncations, self.final_true_state["scenario"], self.scenario_ids)

    def reset(self, seeds: Seeds | None = None, ids: Int64s | None = None) -> None:
        """Start new episodes in all games, or in those of `ids`.

        Args:
            seeds: One seed per game that starts a new random stream; by default the games continue
                their streams. Gymnasium's seed s gives game i the seed s + i.
            ids: Games to reset.
        """
        self.core.reset(np.arange(self.games) if ids is None else ids, seeds)

    def session_log(self, game: int) -> Records:
        """Red's sessions of a game's episode in order of creation, of type `dtypes.SESSION`."""
        return np.frombuffer(self.core.session_log(game), dtypes.SESSION)

    def save(self, ids: Int64s) -> list[bytes]:
        """Serialize games, random streams included."""
        return [self.core.save(int(game)) for game in ids]

    def restore(self, ids: Int64s, blobs: Sequence[bytes]) -> None:
        """Replace games by saved ones.

        Raises:
            ValueError: a snapshot is damaged or does not fit this batch; nothing was changed.
        """
        self.core.restore(ids, list(blobs))

    def copy(self, sources: Int64s, targets: Int64s) -> None:
        """Replace games by copies of others; `reseed` makes their random draws differ."""
        self.restore(targets, self.save(sources))

    def reseed(self, ids: Int64s, seeds: Seeds) -> None:
        """Give games new random streams for the rest of the episode."""
        self.core.reseed(ids, seeds)


class TrueState:
    """Read-only views of a batch's memory; they always show the current state.

    Made of records, they are views of those records.
    """

    # Per game and host:
    access: Bytes  # of red: 0 none, 1 user level, 2 privileged
    privileged: Bytes  # number of red's privileged sessions
    user_seen: Bytes  # user-level sessions that blue can remove
    user_unseen: Bytes  # user-level sessions that blue cannot remove
    decoys: NDArray[np.uint16]  # bit i: names.DECOYS[i]; +256 per further Vsftpd
    malware: Bytes  # 1: a suspicious file is on the disk
    compromised: Bytes  # blue's table: 0 no, 1 unknown, 2 user, 3 privileged
    ot_running: Bytes  # OTService runs
    ot_pid_known: Bytes  # Impact can still stop OTService (docs/rules.md, Q2)
    mail_immune: Bytes  # a restored mail server (docs/rules.md, L2)

    # Per game:
    ot_service_known: Bytes  # red has learned of OTService
    red: Bytes  # _core.Red of the episode
    edition: Bytes  # _core.Edition
    scenario: NDArray[np.uint16]  # index of the scenario in the batch

    def __init__(self, source: Batch | Records) -> None:
        """View the true state of a batch, or records of type `dtypes.TRUE_STATE`."""
        state = (source.true_state if isinstance(source, Batch) else source).view()
        state.flags.writeable = False
        for field in state.dtype.names or ():
            setattr(self, field, state[field])


def _allocate_outputs(
    games: int, config: BatchConfig, layout: Layout, core_class: CoreBatchClass
) -> Arrays:
    """Allocate the arrays that the core writes; without rows where the settings need none."""
    is_present = {
        _core.OutputCondition.ALWAYS: True,
        _core.OutputCondition.SAME_STEP_RESET: config.autoreset == "same_step",
        _core.OutputCondition.ORDER: config.order is not None,
    }
    outputs = {}
    for name, types, fixed_columns, condition in core_class.output_fields():
        columns = fixed_columns or 4 * len(layout.slots)
        rows = games if is_present[condition] else 0
        dtype = types[0] if len(types) == 1 else config.observation_dtype
        outputs[name] = np.zeros((rows, columns) if columns > 1 else rows, dtype)
    return outputs


def _true_state_struct(
    scenarios: Sequence[Scenario], core_class: CoreBatchClass
) -> np.dtype[np.void]:
    """Type of the true state in memory, with the hosts of the largest scenario."""
    if core_class is _core.CompiledBatch:
        return dtypes.CAGE2_TRUE_STATE
    return dtypes.trimmed(dtypes.TRUE_STATE, max(len(scenario.hosts) for scenario in scenarios))


def _check_reds(config: BatchConfig, games: int) -> None:
    """Check that the red agents of each game can play its scenarios."""
    settings = _names_per_game("red", config.red, games, red_class_names)
    pairs = set()
    count = len(config.scenarios)
    for game, reds in enumerate(settings):
        own = range(count) if config.scenario_per == "episode" else (game % count,)
        pairs |= {(index, red) for index in own for red in reds}
    for index, red in sorted(pairs):
        config.scenarios[index].check_red(red)


def _game_configs(games: int, config: BatchConfig) -> Records:
    configs = np.zeros(games, dtypes.GAME_CONFIG)
    configs["horizon"] = _per_game("max_steps", config.max_steps, games, _checked_horizon)
    configs["reds"] = _names_per_game("red", config.red, games, red_bitmask)
    configs["red_shares"] = _names_per_game("red", config.red, games, red_shares)
    configs["edition"] = _names_per_game("edition", config.edition, games, _edition_number)
    configs["green"] = _per_game("green", config.green, games, _checked_green)
    return configs


def _useful_threads(games: int) -> int:
    return max(1, min(usable_cores(), games // GAMES_PER_THREAD))


def _is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer)


def _check_dtype(dtype: DTypeLike) -> None:
    try:
        known = np.dtype(dtype) in (np.float32, np.uint8)
    except TypeError:
        known = False
    if not known:
        raise ValueError(
            f"observation_dtype must be one of float32, uint8; got {short_repr(dtype)}"
        )


def _per_game(name: str, value: Any, games: int, convert: Callable[[Any], T]) -> list[T]:
    """Convert a setting, one value for all games or one per game, to one value per game."""
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        return [convert(value)] * games
    if len(value) != games:
        raise ValueError(
            f"{name} must be one value or one per game, got {len(value)} for {games} games"
        )
    return [convert(item) for item in value]


def _names_per_game(name: str, value: Any, games: int, convert: Callable[[str], T]) -> list[T]:
    """Convert a setting that is given by name."""

    def checked(item: Any) -> T:
        if not isinstance(item, str):
            raise TypeError(f"{name} must be a string, or one per game, got {short_repr(item)}")
        return convert(item)

    return _per_game(name, value, games, checked)


def _checked_horizon(max_steps: Any) -> int:
    if not _is_integer(max_steps) or not 1 <= max_steps <= _core.MAX_STEPS:
        raise ValueError(
            f"max_steps must be a whole number from 1 to {_core.MAX_STEPS}, "
            f"got {short_repr(max_steps)}"
        )
    return int(max_steps)


def _checked_green(green: Any) -> bool:
    if green not in (True, False):
        raise ValueError(f"green must be True or False, got {short_repr(green)}")
    return bool(green)


def _edition_number(name: str) -> int:
    return int(edition_code(name))

"""A batch of native games, and the arrays that the core writes."""

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cagepool import _core
from cagepool.errors import short_repr
from cagepool.scenarios import CAGE2, Layout, Scenario
from cagepool.sim import dtypes
from cagepool.sim.action_masks import MaskTables, mask_tables
from cagepool.sim.names import edition_code, red_bitmask, red_class_names, red_shares
from cagepool.sim.orders import order_number
from cagepool.sim.scenario_names import ScenarioNames, scenario_names
from cagepool.sim.scenario_tables import kind_numbers, pack_scenarios
from cagepool.types import Arrays, Bools, Bytes, Float64s, Int32s, Int64s, Records, Seeds

T = TypeVar("T")

AUTORESET = {
    "next_step": _core.Autoreset.NEXT_STEP,
    "same_step": _core.Autoreset.SAME_STEP,
    "disabled": _core.Autoreset.DISABLED,
}
KNOWLEDGE = {"true": _core.Knowledge.TRUE, "observed": _core.Knowledge.OBSERVED}
DEFINITIONS = {"host": _core.Definition.HOST, "seed": _core.Definition.SEED}
COUNTERS = ("compliant", "violations", "wasted", "fixes", "threat_steps")
assert len(COUNTERS) == _core.COUNTER_COUNT
# With fewer games per thread, synchronization costs more than a thread saves
# (benchmarks/results/engine.json).
GAMES_PER_THREAD = 2048


@dataclass(frozen=True, kw_only=True)
class BatchConfig:
    """Settings of the games of a batch; a sequence has one value per game."""

    red: str | Sequence[str] = "B_lineAgent"
    """Red agent by class name or alias. `a+b` and `mix` draw an agent per episode, `a:0.9+b:0.1`
    with these probabilities; with `given` the caller plays red."""
    edition: str | Sequence[str] = "2.1"
    """`2.1`, the current game, or `leaderboard`, the game of the published scores."""
    max_steps: int | Sequence[int] = 100
    """Steps after which an episode is truncated."""
    green: bool | Sequence[bool] = False
    """Whether GreenAgent scans hosts."""
    order: str | Sequence[str] | None = None
    """Workflow order for compliance; None: compliance is not measured."""
    alignment: float = 0.0
    """Lambda of the alignment reward."""
    knowledge: Literal["true", "observed"] = "true"
    """Threatened hosts: those with a red session (`true`), or those that blue's table reports
    (`observed`)."""
    definition: Literal["host", "seed"] = "host"
    """Compliance as specified (`host`), or by the older definition (`seed`), for comparison."""
    autoreset: Literal["next_step", "same_step", "disabled"] = "next_step"
    """When a finished game is reset, as in `gymnasium.vector.AutoresetMode`."""
    observation_dtype: DTypeLike = "float32"
    """NumPy type of observations: float32 or uint8."""
    scenario: Scenario | Sequence[Scenario] | None = None
    """Network, or networks; None: that of CAGE-2."""
    scenario_per: Literal["env", "episode"] = "env"
    """`env`: game i plays network i modulo their number. `episode`: drawn for every episode."""
    layout: Layout | None = None
    """Slots and kinds of actions of observations and actions; None: those of the networks."""
    threads: int = 0
    """Threads that step games; 0: chosen by the number of games and cores."""

    def __post_init__(self) -> None:
        """Check the settings that do not depend on the number of games."""
        _one_of("autoreset", self.autoreset, AUTORESET)
        _one_of("knowledge", self.knowledge, KNOWLEDGE)
        _one_of("definition", self.definition, DEFINITIONS)
        _one_of("scenario_per", self.scenario_per, ("env", "episode"))
        _check_dtype(self.observation_dtype)
        if not _is_integer(self.threads) or self.threads < 0:
            wanted = "a whole number of at least 1, or 0 to choose"
            raise ValueError(f"threads must be {wanted}, got {short_repr(self.threads)}")
        if not isinstance(self.alignment, Real) or not 0 <= self.alignment < np.inf:
            raise ValueError(
                f"alignment must be a number of at least 0, got {short_repr(self.alignment)}"
            )
        if self.alignment and self.order is None:
            raise ValueError(
                f"alignment needs an order, got alignment={self.alignment} and no order"
            )
        if not self.is_built_in and self.definition != "host":
            raise ValueError(
                f"definition must be host for networks other than CAGE-2's, got {self.definition!r}"
            )

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """The networks."""
        if self.scenario is None:
            return (CAGE2,)
        return (self.scenario,) if isinstance(self.scenario, Scenario) else (*self.scenario,)

    @property
    def is_built_in(self) -> bool:
        """Whether all games are those of CAGE-2, for which the core is compiled."""
        return self.layout is None and {*self.scenarios} == {CAGE2}


class Batch:
    """N games that are stepped together.

    Every call of `step` overwrites the arrays below. `step` is the core's own method:
    `step(actions, red_actions=None, ids=None)` takes int64 arrays and returns the number of
    episodes that ended.
    """

    observations: NDArray[Any]  # (games, 52), or four columns per slot of `layout`
    final_observations: NDArray[Any]  # of the episodes that ended in this step; same_step only
    final_true_state: Records  # the same of the true state
    rewards: Float64s  # (games,)
    truncations: Bools  # (games,)
    moves: Records  # (games,), actions of blue, green and red in the last step
    true_state: Records  # (games,), see dtypes.TRUE_STATE, SCENARIO_TRUE_STATE; read-only
    scenario_ids: NDArray[np.integer]  # (games,), network of each game in `scenarios`; read-only
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
        outputs = _allocate_outputs(self.games, config, self.layout)
        for name, array in outputs.items():
            struct = _struct(name, config)
            setattr(self, name, array if struct is None else array.view(struct).reshape(-1))
        self.counters = self.counters[:]
        self.scenario_ids = (
            np.zeros(self.games, np.uint32) if config.is_built_in else self.true_state["scenario"]
        )
        for state in (self.true_state, self.counters, self.scenario_ids):  # views of `outputs`
            state.flags.writeable = False
        if config.order is not None:
            self.orders[:] = _names_per_game("order", config.order, self.games, order_number)
        threads = int(config.threads) or _useful_threads(self.games)
        self.core = self._make_core(configs, outputs, threads)
        self.red_action_count = _red_action_count(config)
        self.step = self.core.step
        self.stream_key = self.core.stream_key

    def _make_core(
        self, configs: Records, outputs: Arrays, threads: int
    ) -> _core.Batch | _core.ScenarioBatch:
        config = self.config
        shared: dict[str, Any] = {
            "configs": dtypes.as_bytes(configs),
            "outputs": outputs,
            "autoreset": AUTORESET[config.autoreset],
            "knowledge": KNOWLEDGE[config.knowledge],
            "alignment_lambda": config.alignment,
            "threads": threads,
        }
        if config.is_built_in:
            return _core.Batch(definition=DEFINITIONS[config.definition], **shared)
        _check_reds(config, self.games)
        return _core.ScenarioBatch(
            scenarios=dtypes.as_bytes(pack_scenarios(self.scenarios, self.layout)),
            kinds=kind_numbers(self.layout),
            slots=len(self.layout.slots),
            draws_scenarios=config.scenario_per == "episode",
            **shared,
        )

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

    @property
    def compiled(self) -> _core.Batch:
        """The batch of the core, with what it has for CAGE-2's network only.

        Raises:
            ValueError: the games are of other networks.
        """
        if isinstance(self.core, _core.Batch):
            return self.core
        raise ValueError(f"the network must be that of CAGE-2, got {self.scenarios[0].name}")

    def reset(self, seeds: Seeds | None = None, ids: Int64s | None = None) -> None:
        """Start new episodes in all games, or in those of `ids`.

        Args:
            seeds: One seed per game that starts a new random stream; by default the games continue
                their streams. Gymnasium's seed s gives game i the seed s + i.
            ids: Games to reset.
        """
        self.core.reset(np.arange(self.games) if ids is None else ids, seeds)

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


def _allocate_outputs(games: int, config: BatchConfig, layout: Layout) -> Arrays:
    """Allocate the arrays that the core writes; without rows where the settings need none."""
    is_present = {
        _core.OutputCondition.ALWAYS: True,
        _core.OutputCondition.SAME_STEP_RESET: config.autoreset == "same_step",
        _core.OutputCondition.ORDER: config.order is not None,
    }
    fields = _core.output_fields() if config.is_built_in else _core.scenario_output_fields()
    outputs = {}
    for name, types, fixed_columns, condition in fields:
        columns = fixed_columns or 4 * len(layout.slots)
        rows = games if is_present[condition] else 0
        dtype = types[0] if len(types) == 1 else config.observation_dtype
        outputs[name] = np.zeros((rows, columns) if columns > 1 else rows, dtype)
    return outputs


def _struct(output: str, config: BatchConfig) -> np.dtype[np.void] | None:
    """Type of an output that is a struct, with the hosts of the largest network."""
    name = output.removeprefix("final_")
    if config.is_built_in:
        return dtypes.STRUCTS.get(name)
    struct = dtypes.STRUCTS.get(f"scenario_{name}")
    hosts = max(len(scenario.hosts) for scenario in config.scenarios)
    return None if struct is None else dtypes.trimmed(struct, hosts)


def _red_action_count(config: BatchConfig) -> int:
    """Number of red's actions: in other networks than CAGE-2's, Impact has a target."""
    if config.is_built_in:
        return _core.RED_ACTION_COUNT
    subnets = max(len(scenario.subnets) for scenario in config.scenarios)
    return 1 + subnets + 4 * max(len(scenario.hosts) for scenario in config.scenarios)


def _check_reds(config: BatchConfig, games: int) -> None:
    """Check that the red agents of each game can play its networks."""
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
    return max(1, min(os.cpu_count() or 1, games // GAMES_PER_THREAD))


def _is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer)


def _one_of(name: str, value: str, known: Collection[str]) -> None:
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}; got {short_repr(value)}")


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

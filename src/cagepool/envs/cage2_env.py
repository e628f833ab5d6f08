"""`Cage2Env`: one native game. Its spaces and `BatchOwner` also serve the vector environment."""

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from operator import index
from types import FrameType
from typing import Any, Literal, SupportsIndex, TypeAlias, TypedDict, Unpack, cast

import gymnasium as gym
import numpy as np
from gymnasium import Env
from gymnasium.error import ClosedEnvironmentError
from gymnasium.spaces import Box, Discrete, Space
from numpy.typing import DTypeLike

from cagepool import _core
from cagepool._optional import require
from cagepool.cyborg.dict_state import true_state_dict
from cagepool.envs.graph_observation import GraphObserver
from cagepool.envs.reward_hook import RewardFunction, RewardHook, choose_reward
from cagepool.envs.step_hooks import describe_last_moves, reward_part_arrays
from cagepool.envs.vector_args import (
    as_seeds,
    check_names,
    check_seed,
    draw_seed,
    rename_aliases,
)
from cagepool.scenarios import Layout, Scenario, resolve_scenarios
from cagepool.scenarios.resolve import ScenarioLike
from cagepool.sim.batch import Batch, BatchConfig
from cagepool.sim.dtypes import SCENARIO_TRUE_STATE, trimmed
from cagepool.sim.graph import GraphSize
from cagepool.sim.moves import MoveArrays
from cagepool.sim.render import game_scenario, render_text
from cagepool.sim.slots import action_table
from cagepool.types import Bools, Bytes, Infos, Int64s, Observations, Records

RenderMode: TypeAlias = Literal["ansi", "rgb_array"]
RenderedGame: TypeAlias = str | Bytes  # text, or a frame, (576, 960, 3) for CAGE-2
ObservationForm: TypeAlias = Literal["flat", "graph"]

METADATA: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}
_GAME_0 = np.zeros(1, np.int64)  # ids of the only game
_SENTENCES_OF_ONE_GAME = {
    " of game 0": "",
    "reset must come before step; game 0 has not been reset": "reset must come before step",
    "game 0 is over; reset it": "the episode is over; reset the environment",
}


class GameSettings(TypedDict, total=False):
    """Keywords that describe a game; `BatchConfig` documents each."""

    red: str | Sequence[str]
    edition: str | Sequence[str]
    max_steps: int | Sequence[int]
    green: bool | Sequence[bool]
    order: str | Sequence[str] | None
    alignment: float
    knowledge: Literal["true", "observed"]
    definition: Literal["host", "seed"]
    observation_dtype: DTypeLike
    scenario: ScenarioLike | None
    scenario_per: Literal["env", "episode"]
    layout: Layout | None


class ObservationSettings(TypedDict, total=False):
    """Keywords that decide the form of observations."""

    observation: ObservationForm
    graph_size: GraphSize | None


def observation_space(dtype: DTypeLike, layout: Layout | None = None) -> Space[Observations]:
    """Space of an observation: four bits per slot of the layout; None: 52 for CAGE-2."""
    size = _core.OBSERVATION_SIZE if layout is None else 4 * len(layout.slots)
    return cast("Space[Observations]", Box(0, 1, (size,), np.dtype(dtype).type))


def action_space(layout: Layout | None = None) -> Discrete:
    """Space of blue's actions in a layout; None: the 145 of CAGE-2."""
    return Discrete(_core.ACTION_COUNT if layout is None else len(action_table(layout)))


def resolve_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings under our names, with scenarios in place of what names them.

    Raises:
        TypeError: a setting was given under two names.
        ValueError: there are no such scenarios.
    """
    keywords = rename_aliases(settings)
    if keywords.get("scenario") is not None:
        keywords["scenario"] = resolve_scenarios(keywords["scenario"])
    return keywords


def make_observer(
    batch: Batch, observation: ObservationForm = "flat", graph_size: GraphSize | None = None
) -> GraphObserver | None:
    """What turns the games into graphs; None for flat observations.

    Raises:
        ValueError: there is no such form, or graphs are to have another type than float32.
    """
    if observation not in ("flat", "graph"):
        raise ValueError(f"observation must be 'flat' or 'graph', got {observation!r}")
    if observation == "flat":
        return None
    dtype = np.dtype(batch.config.observation_dtype)
    if dtype != np.float32:
        raise ValueError(f"observation_dtype must be float32 for graphs, got {dtype}")
    return GraphObserver(batch, graph_size)


def game_masks(batch: Batch, **flags: bool) -> Bools:
    """Actions that can have an effect in every game, (games, actions): see `sim.action_masks`."""
    return batch.mask_tables.masks(batch.true_state["decoys"], batch.scenario_ids, **flags)


class BatchOwner:
    """Owns a batch of native games until it is closed; releasing the batch ends its threads."""

    render_mode: str | None
    _batch: Batch | None = None
    _settings: Collection[str] = GameSettings.__annotations__  # that `__repr__` shows

    @property
    def batch(self) -> Batch:
        """The native games.

        Raises:
            ClosedEnvironmentError: the environment was closed.
        """
        if self._batch is None:
            raise ClosedEnvironmentError("an environment must not be used after it was closed")
        return self._batch

    def _set_render_mode(self, render_mode: str | None) -> None:
        if render_mode not in (None, *METADATA["render_modes"]):
            raise ValueError(
                f"render_mode must be 'ansi', 'rgb_array' or None, got {render_mode!r}"
            )
        self.render_mode = render_mode

    def _describe_games(self, **first: object) -> str:
        """Arguments for `__repr__`: red, edition, steps, and settings that are not the default."""
        if self._batch is None:
            return "closed"
        config = self._batch.config
        shown = {name: getattr(config, name) for name in ("red", "edition", "max_steps")}
        if config.scenario is not None:
            names = [scenario.name for scenario in self._batch.scenarios]
            shown["scenario"] = names[0] if len(names) == 1 else f"{len(names)} networks"
        for field in fields(config):
            value = getattr(config, field.name)
            if field.name in self._settings and (
                not isinstance(value, type(field.default)) or value != field.default
            ):
                shown.setdefault(field.name, value)
        return ", ".join(f"{name}={value!r}" for name, value in (first | shown).items())

    def render_games(self, games: Sequence[int]) -> tuple[RenderedGame, ...]:
        """Render these games as text or as frames, by the render mode.

        Raises:
            RuntimeError: the environment was made without a render mode.
            MissingExtraError: Pillow, which draws frames, is not installed.
        """
        if self.render_mode is None:
            raise RuntimeError(
                "render needs an environment made with render_mode='ansi' or 'rgb_array'"
            )
        if self.render_mode == "ansi":
            return tuple(render_text(self.batch, game) for game in games)
        with require("render_mode='rgb_array'", "render", "PIL"):
            from cagepool.sim.frames import draw_frames  # noqa: PLC0415 - Pillow is optional
        return tuple(draw_frames(self.batch, games))


class Cage2Env(BatchOwner, Env[Observations, SupportsIndex]):
    """One game of CAGE-2: the same as game 0 of a vector environment with the same seed.

    It can be pickled and deep-copied at any time; the copy continues the same random stream.
    """

    metadata = METADATA.copy()

    def __init__(  # noqa: PLR0913 - settings that are not of the batch
        self,
        *,
        render_mode: RenderMode | None = None,
        reward: RewardFunction | str | None = None,
        reward_weights: Mapping[str, float] | None = None,
        reward_parts: bool = False,
        moves: bool = False,
        action_mask: bool = False,
        observation: ObservationForm = "flat",
        graph_size: GraphSize | None = None,
        **settings: Unpack[GameSettings],
    ) -> None:
        """Make the game; it must be reset before the first step. See `cagepool.make`."""
        self._set_render_mode(render_mode)
        keywords = resolve_settings(settings)
        keywords.setdefault("max_steps", _time_limit(sys._getframe(1)))  # noqa: SLF001
        check_names(keywords, GameSettings.__annotations__)
        config = BatchConfig(autoreset="disabled", threads=1, **keywords)
        self._batch = Batch(1, config)
        reward = choose_reward(reward, reward_weights)
        self._reward_hook = None if reward is None else RewardHook(reward, 1)
        self._has_parts = reward_parts
        self._has_moves = moves
        self._has_masks = action_mask
        self._seeded = False
        self._observer = make_observer(self._batch, observation, graph_size)
        flat = observation_space(config.observation_dtype, self._batch.layout)
        self.observation_space = (
            flat if self._observer is None else cast("Any", self._observer.space)
        )
        self.action_space = action_space(self._batch.layout)

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002 - Gymnasium's signature
    ) -> tuple[Observations, Infos]:
        """Start a new episode.

        Args:
            seed: Starts a new random stream. Without a seed the episode continues the current
                stream; the first stream is seeded at random.
            options: Ignored.
        """
        batch = self.batch
        new_seed = None if seed is None else check_seed(seed)
        super().reset(seed=seed)
        if new_seed is None and not self._seeded:
            new_seed = draw_seed(self.np_random)
        batch.reset(None if new_seed is None else as_seeds([new_seed]))
        if self._reward_hook is not None:
            self._reward_hook.start(_GAME_0)
        self._seeded = True
        return self.observation, self._mask_infos()

    def step(
        self, action: SupportsIndex, red_action: SupportsIndex | None = None
    ) -> tuple[Observations, float, bool, bool, Infos]:
        """Play one action of blue, and one of red if red is `given`.

        Raises:
            IndexError: an action is out of range; nothing was played.
            RuntimeError: the episode is over or has not begun.
            ValueError: the reward function failed; the step was played.
        """
        batch, hook = self.batch, self._reward_hook
        rewards = batch.rewards
        if hook is not None:
            rewards = hook.rewards
            hook.before_step(batch)
        try:
            ended = batch.step(_as_row(action), None if red_action is None else _as_row(red_action))
        except (IndexError, RuntimeError) as error:
            raise type(error)(_without_index(str(error))) from None
        if hook is not None:
            hook.after_step(batch, _GAME_0)
        return self.observation, float(rewards[0]), False, bool(ended), self._infos(bool(ended))

    def describe(self) -> str:
        """The moves of the last step, such as `blue: Restore User1, success; red: Sleep`."""
        return describe_last_moves(self.batch, 0)

    def render(self) -> RenderedGame:
        """Render the game; see `render_games`."""
        return self.render_games([0])[0]

    def close(self) -> None:
        """Release the game."""
        self._batch = None

    @property
    def observation(self) -> Observations:
        """Copy of the current observation, which `restore` changes too."""
        if self._observer is not None:
            graphs = self._observer.observe(self.batch)
            graph: Any = {name: array[0].copy() for name, array in graphs.items()}
            return cast("Observations", graph)
        observation: Observations = self.batch.observations[0].copy()
        return observation

    @property
    def scenario(self) -> Scenario:
        """Network of the current episode."""
        return game_scenario(self.batch, 0)

    def true_state(self) -> Records:
        """Copy of the true state, shape (): see `sim.TrueState`.

        Fields over hosts have one entry per host, or per slot of a layout that was given.
        """
        batch = self.batch
        states = batch.true_state
        if batch.config.layout is not None and isinstance(batch.core, _core.ScenarioBatch):
            # One type for all environments of a vector, whatever their networks are.
            states = states.view(trimmed(SCENARIO_TRUE_STATE, len(batch.layout.slots)))
        return states.copy().reshape(())

    def true_state_dict(self) -> dict[str, Any]:
        """The true state in the form of CybORG's `get_agent_state('True')`."""
        return true_state_dict(self.batch, 0)

    def action_masks(
        self, *, monitor: bool = True, defender: bool = True, user0: bool = True
    ) -> Bools:
        """Actions that can have an effect, (actions,): see `sim.action_masks`."""
        masks = game_masks(self.batch, monitor=monitor, defender=defender, user0=user0)
        return masks.reshape(-1)

    def save(self) -> bytes:
        """Snapshot of the game, including its random stream."""
        return self.batch.save(_GAME_0)[0]

    def restore(self, blob: bytes) -> None:
        """Replace the game by a snapshot.

        Raises:
            ValueError: the snapshot is damaged, has another version or needs a longer horizon;
                nothing was changed.
        """
        self.batch.restore(_GAME_0, [blob])
        if self._reward_hook is not None:
            self._reward_hook.start(_GAME_0)
        self._seeded = True

    def reseed(self, seed: int) -> None:
        """Continue the game with a new random stream."""
        self.batch.reseed(_GAME_0, as_seeds([seed]))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._describe_games()})"

    def __str__(self) -> str:
        """Text inside the text of Gymnasium's wrappers."""
        return repr(self) if self.spec is None else f"<{self!r}<{self.spec.id}>>"

    def _infos(self, ended: bool) -> Infos:  # noqa: FBT001 - the only argument
        batch = self.batch
        infos = self._mask_infos()
        if self._has_moves:
            arrays = MoveArrays(batch.moves, batch.names, batch.scenario_ids).as_dict()
            infos["moves"] = {name: array.item() for name, array in arrays.items()}
        if self._has_parts:
            parts = reward_part_arrays(batch, batch.true_state)
            tenths = parts.pop("tenths")[0]
            infos["reward_parts"] = {name: part.item() for name, part in parts.items()}
            infos["reward_parts"]["tenths"] = tenths
        if ended and batch.config.order is not None:
            infos["compliance"] = batch.episode_counters[0].copy()
        if ended and self._reward_hook is not None:
            infos["official_return"] = float(batch.episode_returns[0])
        return infos

    def _mask_infos(self) -> Infos:
        return {"action_mask": self.action_masks().astype(np.int8)} if self._has_masks else {}

    def __getstate__(self) -> tuple[dict[str, Any], BatchConfig | None, bytes]:
        attributes = {name: value for name, value in vars(self).items() if name != "_batch"}
        if self._batch is None:
            return attributes, None, b""
        return attributes, self._batch.config, self.save()

    def __setstate__(self, state: tuple[dict[str, Any], BatchConfig | None, bytes]) -> None:
        attributes, config, blob = state
        vars(self).update(attributes)
        if config is not None:
            self._batch = Batch(1, config)
            self._batch.restore(_GAME_0, [blob])


def _time_limit(caller: FrameType) -> Any:
    """Default of `max_steps`: the argument `max_episode_steps` of `gym.make`, if it is the caller.

    Gymnasium gives that argument to its wrapper TimeLimit only, which could not prolong a game.
    """
    limit = None
    if caller.f_code is gym.make.__code__:
        limit = caller.f_locals.get("max_episode_steps")
    return BatchConfig.max_steps if limit in (None, -1) else limit


def _without_index(sentence: str) -> str:
    """A sentence of the core about the only game of a batch."""
    for text, replacement in _SENTENCES_OF_ONE_GAME.items():
        sentence = sentence.replace(text, replacement)
    return sentence


def _as_row(action: SupportsIndex) -> Int64s:
    return np.array([index(action)])

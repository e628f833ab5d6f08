"""`Cage2Env`: one native game, registered with Gymnasium. `BatchOwner` serves the vector too."""

from collections.abc import Collection, Sequence
from dataclasses import fields
from operator import index
from typing import Any, SupportsIndex, TypeAlias, Unpack, cast

import numpy as np
from gymnasium import Env
from gymnasium.envs import registration
from gymnasium.error import ClosedEnvironmentError
from gymnasium.spaces import Box, Discrete, Space
from numpy.typing import DTypeLike

from cagepool import _core
from cagepool._optional import require
from cagepool.cyborg.dict_state import true_state_dict
from cagepool.envs.graph_observation import GraphObserver
from cagepool.envs.settings import ENV_SETTINGS, EnvKeywords, EnvSettings, read_settings
from cagepool.envs.step_hooks import StepHooks, describe_last_moves, episode_infos
from cagepool.envs.vector_args import as_seeds, check_seed, draw_seed
from cagepool.render.game import game_scenario
from cagepool.render.text import render_text
from cagepool.scenarios import Layout, Scenario
from cagepool.sim.batch import Batch, BatchConfig
from cagepool.sim.dtypes import as_true_state
from cagepool.sim.masks import action_table
from cagepool.types import Bools, Bytes, Infos, Int64s, Observations, Records

RenderedGame: TypeAlias = str | Bytes  # text, or a frame, (576, 960, 3) for CAGE-2
ENVIRONMENT_ID = "cagepool/CAGE2-v0"

METADATA: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}
_GAME_0 = np.zeros(1, np.int64)  # ids of the only game
_ALL_GAMES = np.ones(1, np.bool_)  # mask of the only game
_SENTENCES_OF_ONE_GAME = {
    " of game 0": "",
    "reset must come before step; game 0 has not been reset": "reset must come before step",
    "game 0 is over; reset it": "the episode is over; reset the environment",
}


def observation_space(dtype: DTypeLike, layout: Layout | None = None) -> Space[Observations]:
    """Space of an observation: four bits per slot of the layout; None: 52 for CAGE-2."""
    size = _core.OBSERVATION_SIZE if layout is None else 4 * len(layout.slots)
    return cast("Space[Observations]", Box(0, 1, (size,), np.dtype(dtype).type))


def action_space(layout: Layout | None = None) -> Discrete:
    """Space of blue's actions in a layout; None: the 145 of CAGE-2."""
    return Discrete(_core.ACTION_COUNT if layout is None else len(action_table(layout)))


def make_observer(batch: Batch, settings: EnvSettings) -> GraphObserver | None:
    """What turns the games into graphs; None for flat observations."""
    if settings.observation == "flat":
        return None
    dtype = np.dtype(settings.observation_dtype)
    if dtype != np.float32:
        raise ValueError(f"observation_dtype must be float32 for graphs, got {dtype}")
    return GraphObserver(batch, settings.graph_size)


def game_masks(batch: Batch, **flags: bool) -> Bools:
    """Actions that can have an effect in every game, (games, actions): see `sim.action_masks`."""
    return batch.mask_tables.masks(batch.true_state["decoys"], batch.scenario_ids, **flags)


class BatchOwner:
    """Owns a batch of native games until it is closed; releasing the batch ends its threads."""

    render_mode: str | None
    _batch: Batch | None = None
    _settings: Collection[str] = ENV_SETTINGS  # that `__repr__` shows

    @property
    def batch(self) -> Batch:
        """The native games."""
        if self._batch is None:
            raise ClosedEnvironmentError("an environment must not be used after it was closed")
        return self._batch

    def _describe_games(self, **first: object) -> str:
        """Arguments for `__repr__`: red, edition, steps, and settings that are not the default."""
        if self._batch is None:
            return "closed"
        config = self._batch.config
        shown = {name: getattr(config, name) for name in ("red", "edition", "max_steps")}
        if config.scenario is not None:
            names = [scenario.name for scenario in self._batch.scenarios]
            shown["scenario"] = names[0] if len(names) == 1 else f"{len(names)} scenarios"
        for field in fields(config):
            value = getattr(config, field.name)
            if field.name in self._settings and (
                not isinstance(value, type(field.default)) or value != field.default
            ):
                shown.setdefault(field.name, value)
        return ", ".join(f"{name}={value!r}" for name, value in (first | shown).items())

    def render_games(self, games: Sequence[int]) -> tuple[RenderedGame, ...]:
        """Render these games as text or as frames, by the render mode."""
        if self.render_mode is None:
            raise RuntimeError(
                "render needs an environment made with render_mode='ansi' or 'rgb_array'"
            )
        if self.render_mode == "ansi":
            return tuple(render_text(self.batch, game) for game in games)
        with require("render_mode='rgb_array'", "render", "PIL"):
            from cagepool.render.pillow import draw_frames  # noqa: PLC0415 - Pillow is optional
        return tuple(draw_frames(self.batch, games))


class Cage2Env(BatchOwner, Env[Observations, SupportsIndex]):
    """One game of CAGE-2: the same as game 0 of a vector environment with the same seed.

    It can be pickled and deep-copied at any time; the copy continues the same random stream.
    """

    metadata = METADATA.copy()

    def __init__(self, **settings: Unpack[EnvKeywords]) -> None:
        """Make the game; it must be reset before the first step. See `cagepool.make_vec`.

        Raises:
            TypeError: a setting is unknown.
            ValueError: a setting has an unknown value.
        """
        keywords = read_settings(settings, ENV_SETTINGS)
        chosen = EnvSettings(autoreset="disabled", threads=1, **keywords)
        self.render_mode = chosen.render_mode
        self._batch = Batch(1, chosen)
        self._hooks = StepHooks.make(self._batch, chosen)
        self._seeded = False
        self._observer = make_observer(self._batch, chosen)
        flat = observation_space(chosen.observation_dtype, self._batch.layout)
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
        infos: Infos = {}
        if self._hooks is not None:
            self._hooks.start(_GAME_0)
            infos = _infos_of_one(self._hooks.reset_infos(batch, _ALL_GAMES))
        self._seeded = True
        return self.observation, infos

    def step(
        self, action: SupportsIndex, red_action: SupportsIndex | None = None
    ) -> tuple[Observations, float, bool, bool, Infos]:
        """Play one action of blue, and one of red if red is `given`.

        Raises:
            IndexError: an action is out of range; nothing was played.
            RuntimeError: the episode is over or has not begun.
            ValueError: the reward function failed; the step was played.
        """
        batch, hooks = self.batch, self._hooks
        if hooks is not None:
            hooks.before_step(batch)
        try:
            ended = batch.step(_as_row(action), None if red_action is None else _as_row(red_action))
        except (IndexError, RuntimeError) as error:
            raise type(error)(_without_index(str(error))) from None
        rewards, infos = batch.rewards, episode_infos(batch, hooks) if ended else {}
        if hooks is not None:
            hooks.after_step(batch)
            rewards, infos = hooks.rewards(batch), hooks.add_infos(batch, infos, _ALL_GAMES)
        infos = _infos_of_one(infos) if infos else infos
        return self.observation, float(rewards[0]), False, bool(ended), infos

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
        """Scenario of the current episode."""
        return game_scenario(self.batch, 0)

    def true_state(self) -> Records:
        """Copy of the true state, shape (): see `sim.TrueState`.

        Fields over hosts have as many entries as the layout has slots, so that all environments of
        a vector have one type.
        """
        return as_true_state(self.batch.true_state, len(self.batch.layout.slots)).reshape(())

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
        if self._hooks is not None:
            self._hooks.restore(_GAME_0)
        self._seeded = True

    def reseed(self, seed: int) -> None:
        """Continue the game with a new random stream."""
        self.batch.reseed(_GAME_0, as_seeds([seed]))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._describe_games()})"

    def __str__(self) -> str:
        """Text inside the text of Gymnasium's wrappers."""
        return repr(self) if self.spec is None else f"<{self!r}<{self.spec.id}>>"

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


def _infos_of_one(infos: Infos) -> Infos:
    """Infos of the only game, from infos of a vector environment."""
    values = {name: value for name, value in infos.items() if not name.startswith("_")}
    return {
        name: _infos_of_one(value) if isinstance(value, dict) else _value_of_one(value)
        for name, value in values.items()
    }


def _value_of_one(values: Any) -> Any:
    return values[0] if values.ndim > 1 else values.item()


def _without_index(sentence: str) -> str:
    """A sentence of the core about the only game of a batch."""
    for text, replacement in _SENTENCES_OF_ONE_GAME.items():
        sentence = sentence.replace(text, replacement)
    return sentence


def _as_row(action: SupportsIndex) -> Int64s:
    return np.array([index(action)])


def register() -> None:
    """Register the environment with Gymnasium, unless it is registered already."""
    if ENVIRONMENT_ID not in registration.registry:
        registration.register(
            ENVIRONMENT_ID,
            entry_point="cagepool.envs.single:Cage2Env",
            vector_entry_point="cagepool.envs.native:NativeVectorEnv",
        )

"""`Cage2Env`: one native game. Its spaces and `BatchOwner` also serve the vector environment."""

from collections.abc import Sequence
from operator import index
from typing import Any, Literal, SupportsIndex, TypeAlias, TypedDict, Unpack, cast

import numpy as np
from gymnasium import Env
from gymnasium.error import ClosedEnvironmentError
from gymnasium.spaces import Box, Discrete, Space
from numpy.typing import DTypeLike

from cagepool import _core
from cagepool.cyborg.dict_state import true_state_dict
from cagepool.envs.vector_args import as_seeds, check_seed, draw_seed
from cagepool.sim.action_masks import action_masks
from cagepool.sim.batch import Batch, BatchConfig
from cagepool.sim.render import render_text
from cagepool.types import Bools, Infos, Int64s, Observations, Records

RenderMode: TypeAlias = Literal["ansi"]

METADATA: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}
_GAME_0 = np.zeros(1, np.int64)  # ids of the only game


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


def observation_space(dtype: DTypeLike) -> Space[Observations]:
    """Space of the 52 bits of an observation."""
    space = Box(0, 1, (_core.OBSERVATION_SIZE,), np.dtype(dtype).type)
    return cast("Space[Observations]", space)


def action_space() -> Discrete:
    """Space of blue's 145 actions."""
    return Discrete(_core.ACTION_COUNT)


class BatchOwner:
    """Owns a batch of native games until it is closed; releasing the batch ends its threads."""

    render_mode: str | None
    _batch: Batch | None = None

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
            raise ValueError(f"render_mode must be 'ansi' or None, got {render_mode!r}")
        self.render_mode = render_mode

    def _render_games(self) -> tuple[str, ...]:
        if self.render_mode is None:
            raise RuntimeError("render needs an environment made with render_mode='ansi'")
        return tuple(render_text(self.batch, game) for game in range(self.batch.games))


class Cage2Env(BatchOwner, Env[Observations, SupportsIndex]):
    """One game of CAGE-2: the same as game 0 of a vector environment with the same seed.

    It can be pickled and deep-copied at any time; the copy continues the same random stream.
    """

    metadata = METADATA.copy()

    def __init__(
        self, *, render_mode: RenderMode | None = None, **settings: Unpack[GameSettings]
    ) -> None:
        """Make the game; it must be reset before the first step.

        Args:
            render_mode: `ansi` or None.
            settings: See `sim.BatchConfig`.
        """
        self._set_render_mode(render_mode)
        config = BatchConfig(autoreset="disabled", threads=1, **settings)
        self._batch = Batch(1, config)
        self._seeded = False
        self.observation_space = observation_space(config.observation_dtype)
        self.action_space = action_space()

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
        self._seeded = True
        return self.observation, {}

    def step(
        self, action: SupportsIndex, red_action: SupportsIndex | None = None
    ) -> tuple[Observations, float, bool, bool, Infos]:
        """Play one action of blue, and one of red if red is `given`.

        Raises:
            IndexError: an action is out of range; nothing was played.
            RuntimeError: the episode is over or has not begun.
        """
        batch = self.batch
        ended = batch.step(_as_row(action), None if red_action is None else _as_row(red_action))
        infos: Infos = {}
        if ended and batch.config.order is not None:
            infos["compliance"] = batch.episode_counters[0].copy()
        return self.observation, float(batch.rewards[0]), False, bool(ended), infos

    def render(self) -> str:
        """Render the game as text.

        Raises:
            RuntimeError: the environment was made without a render mode.
        """
        return self._render_games()[0]

    def close(self) -> None:
        """Release the game."""
        self._batch = None

    @property
    def observation(self) -> Observations:
        """Copy of the current observation, which `restore` changes too."""
        observation: Observations = self.batch.observations[0].copy()
        return observation

    def true_state(self) -> Records:
        """Copy of the true state, shape (), with the fields of `sim.dtypes.TRUE_STATE`."""
        return self.batch.true_state.copy().reshape(())

    def true_state_dict(self) -> dict[str, Any]:
        """The true state in the form of CybORG's `get_agent_state('True')`."""
        return true_state_dict(self.batch, 0)

    def action_masks(
        self, *, monitor: bool = True, defender: bool = True, user0: bool = True
    ) -> Bools:
        """Actions that can have an effect, (145,): see `sim.action_masks`."""
        decoys = self.batch.true_state["decoys"]
        masks = action_masks(decoys, monitor=monitor, defender=defender, user0=user0)
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
        self._seeded = True

    def reseed(self, seed: int) -> None:
        """Continue the game with a new random stream."""
        self.batch.reseed(_GAME_0, as_seeds([seed]))

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


def _as_row(action: SupportsIndex) -> Int64s:
    return np.array([index(action)])

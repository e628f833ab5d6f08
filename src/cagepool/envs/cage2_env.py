"""One native game as a Gymnasium environment."""

from operator import index
from typing import Any, SupportsIndex, Unpack

import numpy as np
from gymnasium import Env

from cagepool.cyborg.dict_state import true_state_dict
from cagepool.envs import seeding, spaces
from cagepool.envs.holder import BatchHolder
from cagepool.envs.settings import (
    METADATA,
    GameSettings,
    RenderMode,
    check_render_mode,
    single_config,
)
from cagepool.sim.action_masks import action_masks
from cagepool.sim.batch import Batch, BatchConfig
from cagepool.types import Bools, Infos, Int64s, Observations, Records

_ONLY = np.zeros(1, np.int64)  # ids of all games


class Cage2Env(BatchHolder, Env[Observations, SupportsIndex]):
    """One game of CAGE-2: the same as game 0 of a vector environment with the same seed.

    It can be pickled and deep-copied at any time, and then goes on with the same luck.
    """

    metadata = METADATA.copy()

    def __init__(
        self, *, render_mode: RenderMode | None = None, **settings: Unpack[GameSettings]
    ) -> None:
        """Make the game, as `sim.BatchConfig` says; it must be reset before the first step."""
        check_render_mode(render_mode)
        config = single_config(settings)
        self._held = Batch(1, config)
        self._seeded = False
        self.render_mode = render_mode
        self.observation_space = spaces.observation_space(config.observation_dtype)
        self.action_space = spaces.action_space()

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002 - Gymnasium's signature
    ) -> tuple[Observations, Infos]:
        """Start a new episode: the first of a new random stream, or the next of the old one.

        Args:
            seed: Of the stream; without one it begins at random.
            options: None are known.
        """
        batch = self.batch
        given = None if seed is None else seeding.checked(seed)
        super().reset(seed=seed)
        if given is None and not self._seeded:
            given = seeding.fresh(self.np_random)
        batch.reset(None if given is None else seeding.as_array([given]))
        self._seeded = True
        return self.observation, {}

    def step(
        self, action: SupportsIndex, red_action: SupportsIndex | None = None
    ) -> tuple[Observations, float, bool, bool, Infos]:
        """Play one action of blue's, and one of red's if red is `given`.

        Raises:
            IndexError: an action is out of range; nothing was played.
            RuntimeError: the episode is over or has not begun.
        """
        batch = self.batch
        ended = batch.step(_row(action), None if red_action is None else _row(red_action))
        infos: Infos = {}
        if ended and batch.config.order is not None:
            infos["compliance"] = batch.episode_counters[0].copy()
        return self.observation, float(batch.rewards[0]), False, bool(ended), infos

    def render(self) -> str:
        """A picture of the game.

        Raises:
            RuntimeError: no render mode was asked for.
        """
        return self._pictures()[0]

    def close(self) -> None:
        """Let go of the game."""
        self._held = None

    @property
    def observation(self) -> Observations:
        """The observation as it now stands; wanted after `restore`."""
        observation: Observations = self.batch.observations[0].copy()
        return observation

    def true_state(self) -> Records:
        """What red holds and what blue believes, shape (), fields of `sim.layout.TRUE_STATE`."""
        return self.batch.true_state.copy().reshape(())

    def true_state_dict(self) -> dict[str, Any]:
        """The true state in CybORG's form."""
        return true_state_dict(self.batch, 0)

    def action_masks(
        self, *, monitor: bool = True, defender: bool = True, user0: bool = True
    ) -> Bools:
        """Actions that make sense, (145,): see `sim.action_masks`."""
        decoys = self.batch.true_state["decoys"]
        masks = action_masks(decoys, monitor=monitor, defender=defender, user0=user0)
        return masks.reshape(-1)

    def save(self) -> bytes:
        """The game as bytes: all that is needed to go on from here, random stream included."""
        return self.batch.save(_ONLY)[0]

    def restore(self, blob: bytes) -> None:
        """Put a saved game in the place of this one.

        Raises:
            ValueError: the snapshot is damaged, foreign or does not fit; nothing was changed.
        """
        self.batch.restore(_ONLY, [blob])
        self._seeded = True

    def reseed(self, seed: int) -> None:
        """Let the game draw from a new random stream from here on."""
        self.batch.reseed(_ONLY, seeding.as_array([seed]))

    def __getstate__(self) -> tuple[dict[str, Any], BatchConfig | None, bytes]:
        others = {name: value for name, value in vars(self).items() if name != "_held"}
        if self._held is None:
            return others, None, b""
        return others, self._held.config, self.save()

    def __setstate__(self, state: tuple[dict[str, Any], BatchConfig | None, bytes]) -> None:
        others, config, blob = state
        vars(self).update(others)
        if config is not None:
            self._held = Batch(1, config)
            self._held.restore(_ONLY, [blob])


def _row(action: SupportsIndex) -> Int64s:
    return np.array([index(action)])

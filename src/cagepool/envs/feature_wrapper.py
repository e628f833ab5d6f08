"""Vector environments that show the inputs of our trainer, which remember the episode."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike

from cagepool import _core
from cagepool.envs.arrays import integers
from cagepool.envs.make import AnyVectorEnv
from cagepool.sim.features import FeatureConfig, FeatureEncoder
from cagepool.types import Bools, Bytes, Float32s, Infos


class RememberingVectorEnv(VectorWrapper):
    """Shows policy inputs instead of observations, and takes choices instead of actions.

    Observations are rows of `FeatureEncoder`; choice k plays action `numbers[k]`.
    """

    def __init__(self, envs: AnyVectorEnv, config: FeatureConfig, *, max_steps: int = 100) -> None:
        """Wrap environments that show CAGE-2's 52 values and reset in the same step.

        `max_steps` is what `time_left` refers to.

        Raises:
            ValueError: the environments are others, or have no order where one is to be seen.
        """
        shape = envs.single_observation_space.shape
        if shape != (_core.OBSERVATION_SIZE,):
            raise ValueError(f"inputs are made of CAGE-2's 52 values, got observations of {shape}")
        if envs.metadata.get("autoreset_mode") is not AutoresetMode.SAME_STEP:
            raise ValueError("inputs need environments with autoreset same_step")
        super().__init__(envs)
        self._inputs = FeatureEncoder(config, envs.num_envs, horizon=max_steps)
        if config.order_input:
            self._inputs.history[:, _core.HISTORY_ORDER_OFFSET] = _orders(envs)
        self._masks = np.zeros((envs.num_envs, self._inputs.n_choices), np.uint8)
        self.numbers = self._inputs.action_indices
        box = gym.spaces.Box(0, 1, (self._inputs.size,), np.float32)
        self.single_observation_space: Any = box
        self.observation_space: Any = batch_space(box, envs.num_envs)
        self.single_action_space: Any = gym.spaces.Discrete(self._inputs.n_choices)
        self.action_space: Any = batch_space(self.single_action_space, envs.num_envs)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32s, Infos]:
        """Start new episodes in all games.

        Raises:
            ValueError: only some games are to be reset.
        """
        if options and "reset_mask" in options:
            raise ValueError("inputs are of games that are reset together, got a reset_mask")
        observations, infos = self.env.reset(seed=seed, options=options)
        self._inputs.reset()
        return self._written(observations), infos

    def step(self, actions: ArrayLike) -> tuple[Float32s, Any, Bools, Bools, Infos]:
        """Play one choice in every game."""
        played = self.numbers[integers("actions", actions)]
        observations, rewards, terminations, truncations, infos = self.env.step(played)
        ends = terminations | truncations
        if ends.any():
            infos = self._ended(played, observations, infos, np.flatnonzero(ends))
        else:
            self._inputs.update(played, _floats(observations))
        return self._written(observations), rewards, terminations, truncations, infos

    def action_masks(self) -> Bools:
        """Choices that make sense, (games, choices): see `sim.action_masks`."""
        return self._masks.astype(np.bool_)

    def _ended(self, played: Any, observations: Any, infos: Infos, ended: Any) -> Infos:
        """Begin new episodes; returns the infos with the last inputs of those that ended."""
        last = _floats(observations).copy()
        for game in ended:
            last[game] = infos["final_obs"][game]
        self._inputs.update(played, last)
        rows = self._written(last)
        finals = infos["final_obs"].copy()
        for game in ended:
            finals[game] = rows[game]
        self._inputs.reset(ended)
        return {**infos, "final_obs": finals}

    def _written(self, observations: Any) -> Float32s:
        rows = np.empty((self.num_envs, self._inputs.size), np.float32)
        self._inputs.encode(_floats(observations), rows, self._masks)
        return rows


def _orders(envs: Any) -> Bytes:
    if len(getattr(envs, "counters", ())) == 0:
        raise ValueError("order_input needs native games with an order")
    orders: Bytes = envs.batch.orders
    return orders


def _floats(observations: Any) -> Float32s:
    return np.ascontiguousarray(observations, np.float32)

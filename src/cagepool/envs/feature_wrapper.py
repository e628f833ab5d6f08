"""`FeatureVectorEnv`: observations replaced by the policy features of our trainer."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike

from cagepool import _core
from cagepool.envs.vector_args import AnyVectorEnv, as_int64s
from cagepool.scenarios import CAGE2
from cagepool.sim.belief import BeliefConfig
from cagepool.sim.encoder import FeatureConfig, FeatureEncoder
from cagepool.sim.settings import DEFAULT_MAX_STEPS
from cagepool.types import Bools, Bytes, Float32s, Infos, Int64s


class FeatureVectorEnv(VectorWrapper):
    """Shows policy features, which include the history of the episode, instead of observations.

    Observations are rows of `sim.encoder.FeatureEncoder`. The action space is the configured
    action subset: choice k plays action `action_indices[k]`.
    """

    def __init__(
        self,
        envs: AnyVectorEnv,
        config: FeatureConfig,
        *,
        max_steps: int = DEFAULT_MAX_STEPS,
        belief: BeliefConfig | None = None,
    ) -> None:
        """Wrap environments that show CAGE-2's 52 values and have autoreset same_step.

        Args:
            envs: The environments.
            config: The features and the action subset.
            max_steps: Horizon of the feature `time_left`.
            belief: What blue assumes about the games, if the belief is a feature.

        Raises:
            ValueError: the environments are of another kind, or have no order where it is a
                feature, or the belief is one without its settings.
        """
        shape = envs.single_observation_space.shape
        if shape != (_core.OBSERVATION_SIZE,):
            raise ValueError(f"features need CAGE-2's 52 values, got observations of {shape}")
        scenarios = getattr(envs.unwrapped, "scenarios", (CAGE2,))
        if {*scenarios} != {CAGE2}:
            names = ", ".join(scenario.name for scenario in scenarios[:3])
            raise ValueError(f"features need CAGE-2, got the scenario {names}")
        if envs.metadata.get("autoreset_mode") is not AutoresetMode.SAME_STEP:
            raise ValueError("features need environments with autoreset same_step")
        if config.belief and belief is None:
            raise ValueError("the feature belief needs its settings, belief=BeliefConfig(...)")
        super().__init__(envs)
        self._encoder = FeatureEncoder(config, envs.num_envs, horizon=max_steps, belief=belief)
        if config.order_input:
            self._encoder.set_order(_orders_of(envs))
        self._masks = np.zeros((envs.num_envs, self._encoder.n_choices), np.uint8)
        self.action_indices = self._encoder.action_indices
        box = gym.spaces.Box(0, 1, (self._encoder.size,), np.float32)
        self.single_observation_space: Any = box
        self.observation_space: Any = batch_space(box, envs.num_envs)
        self.single_action_space: Any = gym.spaces.Discrete(self._encoder.n_choices)
        self.action_space: Any = batch_space(self.single_action_space, envs.num_envs)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32s, Infos]:
        """Start new episodes in all games.

        Raises:
            ValueError: the options have a `reset_mask`.
        """
        if options and "reset_mask" in options:
            raise ValueError("features need games that are reset together, got a reset_mask")
        observations, infos = self.env.reset(seed=seed, options=options)
        self._encoder.reset()
        return self._encode(observations), infos

    def step(self, actions: ArrayLike) -> tuple[Float32s, Any, Bools, Bools, Infos]:
        """Play one choice per game."""
        blue_actions = self.action_indices[as_int64s("actions", actions)]
        observations, rewards, terminations, truncations, infos = self.env.step(blue_actions)
        ended = np.flatnonzero(terminations | truncations)
        if len(ended):
            infos = self._encode_final(blue_actions, observations, infos, ended)
            self._encoder.reset(ended)
        else:
            self._encoder.update(blue_actions, _as_float32s(observations))
        return self._encode(observations), rewards, terminations, truncations, infos

    def action_masks(self) -> Bools:
        """Choices that can have an effect, (games, choices): see `sim.action_masks`."""
        return self._masks.astype(np.bool_)

    def _encode_final(
        self, blue_actions: Int64s, observations: Any, infos: Infos, ended: Int64s
    ) -> Infos:
        """Advance the encoder by the step; returns the infos with `final_obs` as features."""
        last_observations = _as_float32s(observations).copy()
        for game in ended:
            last_observations[game] = infos["final_obs"][game]
        self._encoder.update(blue_actions, last_observations)
        rows = self._encode(last_observations)
        final_obs = infos["final_obs"].copy()
        for game in ended:
            final_obs[game] = rows[game]
        return {**infos, "final_obs": final_obs}

    def _encode(self, observations: Any) -> Float32s:
        """Features of the current step; updates the action masks too."""
        rows = np.empty((self.num_envs, self._encoder.size), np.float32)
        self._encoder.encode(_as_float32s(observations), rows, self._masks)
        return rows


def _orders_of(envs: Any) -> Bytes:
    if len(getattr(envs, "counters", ())) == 0:
        raise ValueError("order_input needs native games with an order")
    orders: Bytes = envs.batch.orders
    return orders


def _as_float32s(observations: Any) -> Float32s:
    return np.ascontiguousarray(observations, np.float32)

"""Stable-Baselines3's PPO on the native games, to compare with."""

from typing import Any

import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv

from cagepool.envs import make_vec
from cagepool.train.config import TrainConfig


class NativeVecEnv(VecEnv):
    """The native vector environment as Stable-Baselines3 wants it; just what training needs."""

    def __init__(self, games: int, red: str) -> None:
        """Make the games."""
        self._envs = make_vec(games, red=red, autoreset="same_step", statistics=False)
        space = self._envs.single_observation_space
        super().__init__(games, space, self._envs.single_action_space)

    def reset(self) -> Any:
        """First observations."""
        return self._envs.reset(seed=0)[0]

    def step_async(self, actions: Any) -> None:
        """Keep the actions."""
        self._actions = actions

    def step_wait(self) -> Any:
        """Play the actions that were kept."""
        observations, rewards, _, truncations, infos = self._envs.step(self._actions)
        told: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for game in np.flatnonzero(truncations):
            last = infos["final_obs"][game]
            told[game] = {"TimeLimit.truncated": True, "terminal_observation": last}
        return observations, rewards.astype(np.float32), truncations, told

    def close(self) -> None:
        """Let go of the games."""
        self._envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The same for every game."""
        return [getattr(self._envs, attr_name, None) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Not offered."""
        raise NotImplementedError

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        """Not offered."""
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Nothing is wrapped."""
        del wrapper_class
        return [False for _ in self._get_indices(indices)]


def sb3_ppo(settings: TrainConfig, minibatch: int) -> Any:
    """Its PPO with our settings: same networks, epochs, steps; by default it does 64x64 tanh."""
    return PPO(
        "MlpPolicy",
        NativeVecEnv(settings.n_envs, settings.red_agent),
        n_steps=settings.update_steps,
        batch_size=minibatch,
        n_epochs=settings.epochs,
        gamma=settings.gamma,
        gae_lambda=settings.gae_lambda,
        ent_coef=settings.entropy,
        learning_rate=settings.learning_rate,
        device="cpu",
    )

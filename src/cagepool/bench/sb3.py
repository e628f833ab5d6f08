"""Stable-Baselines3's PPO on the native games, to compare with."""

from typing import Any

from stable_baselines3 import PPO

from cagepool.integrations import sb3
from cagepool.train.config import TrainConfig


def sb3_ppo(settings: TrainConfig, minibatch: int) -> Any:
    """Its PPO with our settings: same networks, epochs, steps; by default it does 64x64 tanh."""
    return PPO(
        "MlpPolicy",
        sb3.make(settings.env.n_envs, red=settings.env.red_agent),
        n_steps=settings.ppo.update_steps,
        batch_size=minibatch,
        n_epochs=settings.ppo.n_epochs,
        gamma=settings.ppo.gamma,
        gae_lambda=settings.ppo.gae_lambda,
        ent_coef=settings.ppo.ent_coef,
        learning_rate=settings.ppo.learning_rate,
        device="cpu",
    )

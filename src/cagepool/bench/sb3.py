"""Stable-Baselines3's PPO on the native games, to compare with."""

from typing import Any

from stable_baselines3 import PPO

from cagepool.integrations import sb3
from cagepool.train.config import TrainConfig


def sb3_ppo(settings: TrainConfig, minibatch: int) -> Any:
    """Its PPO with our settings: same networks, epochs, steps; by default it does 64x64 tanh."""
    return PPO(
        "MlpPolicy",
        sb3.make(settings.n_envs, red=settings.red_agent),
        n_steps=settings.update_steps,
        batch_size=minibatch,
        n_epochs=settings.epochs,
        gamma=settings.gamma,
        gae_lambda=settings.gae_lambda,
        ent_coef=settings.entropy,
        learning_rate=settings.learning_rate,
        device="cpu",
    )

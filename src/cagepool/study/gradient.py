"""Variance of the policy gradient over rollouts, at fixed weights."""

import numpy as np

from cagepool.train.config import TrainConfig
from cagepool.train.learner import LossCoefficients
from cagepool.train.ppo import Trainer
from cagepool.types import Arrays, Float64s

PROBE_SEED = 0x6AAD  # of the rollouts, which no training plays


def gradient_moments(config: TrainConfig, arrays: Arrays, rollouts: int) -> dict[str, float]:
    """Variance and signal of the gradient that updates see, from several rollouts of one policy.

    Each rollout has the environments and steps of a training's rollout. The gradient is that of the
    policy loss of all its transitions, without the entropy bonus; those of the critic are left out.

    Args:
        config: Settings of the training.
        arrays: Of a checkpoint.
        rollouts: At least 2.

    Returns:
        `gradient_variance`, the trace of the covariance over rollouts, and `gradient_signal`, the
        squared norm of the expected gradient, estimated without bias: it may be negative.
    """
    transitions_per_rollout = config.env.n_envs * config.ppo.update_steps
    probe = config.with_settings(
        seed=PROBE_SEED,
        overlap=False,
        total_episodes=rollouts * transitions_per_rollout + config.env.n_envs,
    )
    with Trainer(probe) as trainer:
        trainer.load_policy(arrays)
        gradients = np.stack([_actor_gradient(trainer) for _ in range(rollouts)])
    expected = gradients.mean(axis=0)
    variance = float(np.square(gradients - expected).sum() / (rollouts - 1))
    signal = float(np.square(expected).sum()) - variance / rollouts
    return {"gradient_variance": variance, "gradient_signal": signal}


def _actor_gradient(trainer: Trainer) -> Float64s:
    rollout = trainer.normalization.apply(trainer.collect().rollout)
    transitions, _ = trainer.ppo.transitions(rollout)
    ppo = trainer.config.ppo
    coefficients = LossCoefficients(ppo.clip_range, ppo.clip_range_vf, ent_coef=0.0)
    rows = np.arange(len(transitions.actions))
    _, by_name = trainer.learner.gradient(transitions, rows, coefficients)
    parts = [array.ravel() for name, array in sorted(by_name.items()) if "critic" not in name]
    return np.concatenate(parts).astype(np.float64)

"""PPO of RLlib, ready to learn CAGE-2."""

import os
from math import floor, inf
from typing import Any, Unpack, cast

import numpy as np
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

from cagepool.envs.settings import VectorSettings
from cagepool.integrations.rllib.pool import RunnerPool

MINIBATCH = 500


def ppo_config(
    n_env_runners: int = 2,
    n_envs: int = 50,
    *,
    fragment: int = 100,
    seed: int | None = None,
    **game: Unpack[VectorSettings],
) -> PPOConfig:
    """A configuration on which `build_algo()` can be called at once, or more be set before.

    Args:
        n_env_runners: Processes that play; 0: the one that learns plays as well.
        n_envs: Games of each.
        fragment: Steps played in each game between two updates, all of which make one batch.
        seed: Decides all luck; none: chance does.
        game: What is played, see `sim.BatchConfig`: `red`, `max_steps`, `edition` and so on.

    Raises:
        ValueError: a setting is out of range or not one that is known.
    """
    _check(n_env_runners, n_envs, fragment, game)
    batch = max(1, n_env_runners) * n_envs * fragment
    config = PPOConfig().environment(RunnerPool, env_config=cast("dict[str, Any]", game))
    config.env_runners(
        num_env_runners=n_env_runners,
        num_envs_per_env_runner=n_envs,
        num_cpus_per_env_runner=cast("int", _share_of_cpus(n_env_runners)),  # fractions, too
        gym_env_vectorize_mode="vector_entry_point",
        rollout_fragment_length=fragment,
    )
    config.learners(num_learners=0)
    config.debugging(seed=seed)
    return _learning(config, batch)


def _learning(config: PPOConfig, batch: int) -> PPOConfig:
    """How to learn from batches of that size.

    Values are not clipped: RLlib gives no gradient to one whose squared error is above a limit, by
    default 10, and returns of CAGE-2 are hundreds of points. They have a network of their own,
    because in a common one errors of that size would drown what the policy is to learn.
    """
    config.rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[64, 64], vf_share_layers=False))
    return config.training(
        train_batch_size_per_learner=batch,
        minibatch_size=min(MINIBATCH, batch),
        num_epochs=4,
        lr=1e-3,
        gamma=0.99,
        lambda_=0.95,
        clip_param=0.2,
        entropy_coeff=0.01,
        vf_clip_param=inf,
        use_kl_loss=False,
    )


def _check(n_env_runners: int, n_envs: int, fragment: int, game: VectorSettings) -> None:
    """Refuse here what would otherwise be refused in every process, amid its traceback."""
    least = {"n_env_runners": (n_env_runners, 0), "n_envs": (n_envs, 1), "fragment": (fragment, 1)}
    for name, (given, limit) in least.items():
        if given < limit:
            raise ValueError(f"{name} must be at least {limit}, got {given}")
    red = game.get("red", "")
    if "given" in ([red] if isinstance(red, str) else red):
        raise ValueError("red must be one that plays by itself, got 'given'")
    with RunnerPool({"num_envs": n_envs, **game}) as pool:
        shown = pool.single_observation_space.dtype
    if shown != np.float32:
        raise ValueError(f"observation_dtype must be float32, which RLlib needs; got {shown}")


def _share_of_cpus(n_env_runners: int) -> float:
    """Processors of each runner: one, or its share of all but the one that learns."""
    known = ray.cluster_resources()["CPU"] if ray.is_initialized() else os.cpu_count() or 1
    share = max(1, known - 1) / max(1, n_env_runners)
    return min(1.0, floor(share * 10_000) / 10_000)  # Ray counts in ten-thousandths

"""RLlib's PPO on native games: the configuration and the vector environment of env runners."""

import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import floor, inf
from typing import Any, Unpack, cast

import numpy as np
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

from cagepool.envs.native import NativeVectorEnv, VectorSettings
from cagepool.envs.vector_args import Seed
from cagepool.types import Infos, Observations

MINIBATCH_SIZE = 500


def ppo_config(
    n_env_runners: int = 2,
    n_envs: int = 50,
    *,
    fragment: int = 100,
    seed: int | None = None,
    **game: Unpack[VectorSettings],
) -> PPOConfig:
    """A configuration that is ready for `build_algo()`; more can be set before.

    Args:
        n_env_runners: Processes that play; 0: the learner's process plays too.
        n_envs: Games per env runner.
        fragment: Steps per game between two updates; all steps together are one batch.
        seed: Random seed; None: a random one.
        game: The game, see `sim.BatchConfig`: `red`, `max_steps`, `edition` and so on.

    Raises:
        ValueError: a setting is out of range or has an unknown value.
    """
    _check_settings(n_env_runners, n_envs, fragment, game)
    batch_size = max(1, n_env_runners) * n_envs * fragment
    config = PPOConfig().environment(RunnerPool, env_config=cast("dict[str, Any]", game))
    config.env_runners(
        num_env_runners=n_env_runners,
        num_envs_per_env_runner=n_envs,
        num_cpus_per_env_runner=cast("int", _cpus_per_runner(n_env_runners)),  # may be a fraction
        gym_env_vectorize_mode="vector_entry_point",
        rollout_fragment_length=fragment,
    )
    config.learners(num_learners=0)
    config.debugging(seed=seed)
    return _set_training(config, batch_size)


class RunnerPool(NativeVectorEnv):
    """Native games, made and seeded as RLlib's env runners need it.

    Pass this class to `environment()`, the settings of the games as `env_config`, and
    `gym_env_vectorize_mode="vector_entry_point"` to `env_runners()`; `ppo_config` does so.
    """

    def __init__(self, context: Mapping[str, Any]) -> None:
        """Make `num_envs` games of the context, whose other entries are their settings.

        The autoreset mode is next_step: RLlib's env runners take the observation of the step after
        an end for the first one of the next episode, whatever action was played.
        """
        super().__init__(autoreset="next_step", **{"threads": 1, **context})

    def reset(
        self, *, seed: Seed = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observations, Infos]:
        """Start new episodes, with seeds that no other env runner uses.

        RLlib gives its env runners consecutive seeds. Consecutive seeds for the games of each
        would make game 1 of one env runner equal to game 0 of the next.
        """
        if isinstance(seed, int | np.integer):
            seed = np.random.SeedSequence(int(seed)).generate_state(self.num_envs).tolist()
        return super().reset(seed=seed, options=options)


@contextmanager
def suppress_warnings() -> Iterator[None]:
    """Suppress warnings and log messages, most of which are RLlib's own deprecation warnings."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _set_training(config: PPOConfig, batch_size: int) -> PPOConfig:
    """Set networks and hyper-parameters.

    The value loss is not clipped: RLlib gives no gradient to a value whose squared error is above
    `vf_clip_param`, by default 10, and returns of CAGE-2 are in the hundreds. The critic has its
    own network, since errors of that size would dominate the gradients of a shared one.
    """
    config.rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[64, 64], vf_share_layers=False))
    return config.training(
        train_batch_size_per_learner=batch_size,
        minibatch_size=min(MINIBATCH_SIZE, batch_size),
        num_epochs=4,
        lr=1e-3,
        gamma=0.99,
        lambda_=0.95,
        clip_param=0.2,
        entropy_coeff=0.01,
        vf_clip_param=inf,
        use_kl_loss=False,
    )


def _check_settings(n_env_runners: int, n_envs: int, fragment: int, game: VectorSettings) -> None:
    """Raise here what every env runner would otherwise raise in its own process."""
    minima = {"n_env_runners": (n_env_runners, 0), "n_envs": (n_envs, 1), "fragment": (fragment, 1)}
    for name, (value, minimum) in minima.items():
        if value < minimum:
            raise ValueError(f"{name} must be at least {minimum}, got {value}")
    red = game.get("red", "")
    if "given" in ([red] if isinstance(red, str) else red):
        raise ValueError("red must be one that plays by itself, got 'given'")
    with RunnerPool({"num_envs": n_envs, **game}) as pool:
        dtype = pool.single_observation_space.dtype
    if dtype != np.float32:
        raise ValueError(f"observation_dtype must be float32, which RLlib needs; got {dtype}")


def _cpus_per_runner(n_env_runners: int) -> float:
    """CPUs per env runner: one, or an equal share of all but the learner's."""
    cpus = ray.cluster_resources()["CPU"] if ray.is_initialized() else os.cpu_count() or 1
    share = max(1, cpus - 1) / max(1, n_env_runners)
    return min(1.0, floor(share * 10_000) / 10_000)  # Ray's resolution is 1/10,000 CPU

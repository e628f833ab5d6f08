"""Libraries that train in environments of gymnax's form; `make test-jax` provides them."""

from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cagepool.jax import Cage2

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries

needs_gymnax = pytest.mark.skipif(find_spec("gymnax") is None, reason="gymnax is not installed")
needs_rejax = pytest.mark.skipif(find_spec("rejax") is None, reason="rejax is not installed")


@needs_gymnax
def test_spaces_are_those_of_gymnax() -> None:
    from gymnax.environments import spaces  # noqa: PLC0415 - may be missing

    env = Cage2()

    assert isinstance(env.action_space(), spaces.Discrete)
    assert isinstance(env.observation_space(), spaces.Box)


@needs_gymnax
def test_gymnax_logs_episodes_of_six_values() -> None:
    from gymnax.wrappers.purerl import LogWrapper  # noqa: PLC0415 - may be missing

    env = Cage2()
    params = env.default_params.replace(max_steps_in_episode=2)
    logged = LogWrapper(env)
    key = jax.random.PRNGKey(0)
    _, state = logged.reset(key, params)
    step = jax.jit(logged.step)

    _, state, *_ = step(key, state, jnp.array(0), params)
    _, _, _, terminated, truncated, info = step(key, state, jnp.array(0), params)

    assert (bool(terminated), bool(truncated)) == (False, True)
    assert info["returned_episode_lengths"] == 2


@needs_rejax
def test_rejax_trains_with_five_values() -> None:
    import rejax  # noqa: PLC0415 - may be missing

    env = Cage2().legacy
    settings: dict[str, Any] = {"num_envs": 8, "num_steps": 16, "num_epochs": 1}
    algorithm = rejax.get_algo("ppo").create(
        env=env,
        env_params=env.default_params,
        num_minibatches=2,
        total_timesteps=256,  # two updates
        eval_freq=128,
        **settings,
    )

    _, (lengths, returns) = jax.jit(algorithm.train)(jax.random.PRNGKey(0))

    assert np.isfinite(returns).all()
    assert (np.asarray(lengths) == 100).all()

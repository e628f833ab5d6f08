"""The process that times PPO in one JAX program."""

import pytest

from benchmarks.suites.jax_training import JaxTrainingConfig, _time_training


@pytest.mark.soak  # compiles the program
def test_a_training_is_timed_in_a_process_of_its_own() -> None:
    config = JaxTrainingConfig(updates=1, n_envs=8, n_steps=10)

    assert _time_training(config, seeds=2) > 0

"""The bench of PPO in one JAX program."""

import pytest

from benchmarks.suites.jax_training import JaxTrainingConfig, measure_jax_training


@pytest.mark.soak
def test_several_seeds_are_trained_in_turns_with_one_and_compared_by_all_steps() -> None:
    config = JaxTrainingConfig(repetitions=2, seeds=(1, 2), updates=1, n_envs=8, n_steps=10)
    progress: list[tuple[str, int, int]] = []

    figures = measure_jax_training(config, lambda *done: progress.append(done))

    one, two = figures.groups["training"]
    assert one.repetitions is not None
    assert (one.repetitions.steps_per_call, config.steps(2)) == (80, 160)
    ratio = figures.ratios["2 seeds / 1, steps of all seeds"]
    assert ratio == round(two.steps_per_second / one.steps_per_second, 3)
    assert progress[-1] == ("training", 4, 4)

"""Benches that start Ray: training with actors, and one actor per environment."""

from contextlib import ExitStack

import pytest

from benchmarks.suites.ray_training import RayConfig, measure_ray
from cagepool.bench.measure import DummyEnv, Pace, ray_actors
from cagepool.bench.schema import rates
from cagepool.train.ray import cluster_connection
from tests.train.ray.local_cluster import ignore_leaked_processes


@pytest.mark.ray
@pytest.mark.soak
def test_training_with_and_without_actors_is_measured_interleaved() -> None:
    pace = Pace(repetitions=2, seconds=0.01)
    progress: list[tuple[str, int, int]] = []
    config = RayConfig(pace=pace, n_envs=4, update_steps=5, actors=(1,))

    with ignore_leaked_processes():
        figures = measure_ray(config, lambda *done: progress.append(done))

    rate = rates(figures.groups["training"])
    assert [*rate] == ["no Ray", "no Ray, --async", "1 actor", "1 actor, --async"]
    assert [*rates(figures.groups["collection"])] == ["no Ray", "1 actor"]
    ratio = figures.ratios["training: 1 actor, --async / no Ray, --async"]
    assert ratio == round(rate["1 actor, --async"] / rate["no Ray, --async"], 3)
    assert progress[-1] == ("training", 8, 8)


@pytest.mark.ray
@pytest.mark.soak
def test_one_ray_actor_per_environment_is_a_contender() -> None:
    with ignore_leaked_processes(), cluster_connection(None, 1), ExitStack() as stack:
        contender = ray_actors([DummyEnv] * 2, stack)
        assert contender.steps_per_call == 2
        assert contender.timer(3) > 0

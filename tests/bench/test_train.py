"""Bench of training."""

import pytest

from cagepool.bench.measure import Figures, Pace
from cagepool.bench.schema import rates
from cagepool.bench.train import TrainBenchConfig, measure_training


@pytest.fixture(scope="module")
def figures() -> Figures:
    pace = Pace(repetitions=2, seconds=0.001)
    config = TrainBenchConfig(pace=pace, n_envs=4, update_steps=2, sb3_minibatches=(8,))
    progress: list[tuple[str, int, int]] = []
    measured = measure_training(config, lambda *done: progress.append(done))
    assert [done for group, done, _ in progress if group == "training"] == [*range(25)]
    return measured


def test_rollouts_are_measured_with_and_without_all_features(figures: Figures) -> None:
    names = list(rates(figures.groups["collection"]))
    assert names[:3] == [
        "52 features, 1 thread",
        "52 features, 2 threads",
        "52 features, torch learner",
    ]
    assert all(name.startswith("all features") for name in names[3:])


def test_updates_are_measured_beside_stable_baselines(figures: Figures) -> None:
    names = list(rates(figures.groups["training"]))
    assert names[:3] == ["52 features, 1 thread", "52 features, 2 threads", "52 features, --async"]
    assert names[-2:] == ["SB3, minibatch 8, 1 thread", "SB3, minibatch 8, 2 threads"]


def test_the_fastest_variants_are_compared(figures: Figures) -> None:
    rate = rates(figures.groups["training"])
    fastest = max(value for name, value in rate.items() if name.startswith("52"))
    peer = max(value for name, value in rate.items() if name.startswith("SB3"))
    assert figures.ratios["fastest cagepool / fastest SB3"] == round(fastest / peer, 3)
    native, torch = (rate[f"all features, {name}"] for name in ("2 threads", "torch learner"))
    assert figures.ratios["native learner / torch learner"] == round(native / torch, 3)
    assert figures.ratios["all features, 2 threads / fastest SB3"] == round(native / peer, 3)


def test_training_with_beliefs_is_compared_with_training_without(figures: Figures) -> None:
    rate = rates(figures.groups["training"])
    ratio = rate["all features, 2 threads, --belief"] / rate["all features, 2 threads"]
    assert figures.ratios["with --belief / without"] == round(ratio, 3)


def test_training_with_an_order_is_compared_with_training_without(figures: Figures) -> None:
    rate = rates(figures.groups["training"])
    ratio = rate["all features, 2 threads, with an order"] / rate["all features, 2 threads"]
    assert figures.ratios["with an order / without"] == round(ratio, 3)


def test_the_parts_of_a_training_are_measured(figures: Figures) -> None:
    rate = rates(figures.groups["parts"])
    assert [*rate] == [
        "gradient step, per row, 1 thread",
        "gradient step, per row, 2 threads",
        "values, 1 thread",
        "forward pass and sampling, 1 thread",
        "features, 1 thread",
        "environment step, 1 thread",
    ]
    assert min(rate.values()) > 0


def test_settings_of_the_training_are_recorded(figures: Figures) -> None:
    first = figures.groups["training"][0]
    assert first.settings["epochs"] == 4
    assert first.repetitions.steps_per_call == 4 * 2

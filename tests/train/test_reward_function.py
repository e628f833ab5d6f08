"""Training with a reward function: what is learned from, what is reported, and resuming."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cagepool import runs
from cagepool.train import runner
from cagepool.train.config import TrainConfig
from tests.train.null_listener import NullListener, never
from tests.train.run_results import as_bytes, run_results
from tests.train.short_runs import SHORT, create_run, stop_after, train_run

FUNCTIONS = "tests.envs.reward_functions"


def with_reward(name: str, **settings: Any) -> TrainConfig:
    env = replace(SHORT.env, reward=f"{FUNCTIONS}:{name}", **settings)
    return replace(SHORT, env=env, run=replace(SHORT.run, total_episodes=60))


@pytest.mark.parametrize("backend", ["native", "sync", "workers"])
def test_the_official_return_is_reported_beside_that_of_the_function(
    tmp_path: Path, backend: Any
) -> None:
    path = train_run(tmp_path, with_reward("twice", backend=backend, red_agent="b_line"))
    metrics = runs.open_run(path).metrics()
    assert min(metrics["return_mean"]) < 0
    # Sums of tenths in different orders.
    np.testing.assert_allclose(
        metrics["shaped_return_mean"], 2 * np.array(metrics["return_mean"]), rtol=1e-12
    )


def test_the_official_reward_as_a_function_trains_the_same_policy(tmp_path: Path) -> None:
    shaped = train_run(tmp_path / "shaped", with_reward("official"))
    config = with_reward("official")
    plain = train_run(tmp_path / "plain", replace(config, env=replace(config.env, reward=None)))
    weights, others = (
        as_bytes(runs.open_run(path).checkpoint("last").arrays) for path in (shaped, plain)
    )
    assert weights == others
    assert np.isnan(runs.open_run(plain).metrics()["shaped_return_mean"]).all()


def test_another_reward_trains_another_policy(tmp_path: Path) -> None:
    paths = [train_run(tmp_path / name, with_reward(name)) for name in ("official", "mixed")]
    weights = [as_bytes(runs.open_run(path).checkpoint("last").arrays) for path in paths]
    assert weights[0] != weights[1]


def test_a_resumed_run_finds_its_function(tmp_path: Path) -> None:
    config = with_reward("mixed")
    whole = train_run(tmp_path / "whole", config)
    run = create_run(tmp_path / "parts", config)
    assert not runner.train(run, NullListener(), stop_after(3))
    resumed = runs.open_run(run.path)
    assert resumed.settings["env"]["reward"] == f"{FUNCTIONS}:mixed"
    assert runner.train(resumed, NullListener(), never)
    assert run_results(run.path) == run_results(whole)


def test_compliance_with_an_order_stays(tmp_path: Path) -> None:
    config = with_reward("twice")
    path = train_run(tmp_path, replace(config, order=replace(config.order, order="critical_first")))
    metrics = runs.open_run(path).metrics()
    assert np.isfinite(metrics["compliance"]).any()
    returns, shaped_returns = metrics["return_mean"], metrics["shaped_return_mean"]
    np.testing.assert_allclose(shaped_returns, 2 * np.array(returns), rtol=1e-12)


@pytest.mark.parametrize("env", ["cyborg", "CartPole-v1"])
def test_only_our_game_takes_a_reward_function(env: str) -> None:
    with pytest.raises(ValueError, match=f"env.reward needs cagepool/CAGE2-v0, got {env}"):
        TrainConfig.from_flat(env=env, reward=f"{FUNCTIONS}:twice")


def test_a_function_that_fails_ends_the_training_with_a_sentence(tmp_path: Path) -> None:
    run = create_run(tmp_path, with_reward("raising"))
    with pytest.raises(ValueError, match=f"reward function {FUNCTIONS}:raising raised KeyError"):
        runner.train(run, NullListener(), never)

"""Normalization of observations and returns, in training, checkpoints and play."""

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from cagepool.policy.load import load_run as load
from cagepool.train import runner
from cagepool.train.config import TrainConfig
from cagepool.train.normalization import MIN_DEVIATION, RewardNormalizer, RunningMoments
from cagepool.train.ppo import Trainer
from cagepool.train.rollout import Rollout, RolloutShape
from tests.train.null_listener import NullListener
from tests.train.run_results import run_results
from tests.train.short_runs import SHORT, create_run, stop_after, train_run
from tests.train.toy_envs import Observation, Recall

NORMALIZED = SHORT.with_settings(
    total_episodes=60, normalize_observations=True, normalize_returns=True
)


class Scaled(Recall):
    """Recall whose observations are far from 0 and whose rewards are huge."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (4,), np.float32)

    def reset(self, **options: object) -> tuple[Observation, dict[str, object]]:
        observation, info = super().reset(**options)  # type: ignore[arg-type]
        return 500 + 40 * observation, info

    def step(self, action: object) -> tuple[Observation, float, bool, bool, dict[str, object]]:
        observation, reward, *ends, info = super().step(action)  # type: ignore[arg-type]
        return 500 + 40 * observation, 1e4 * float(reward), ends[0], ends[1], info


def test_moments_of_batches_are_those_of_all_rows() -> None:
    rows = np.random.default_rng(0).normal(5, 3, (100, 4)).astype(np.float32)
    rows[:, 3] = 7
    moments = RunningMoments(4)
    np.testing.assert_array_equal(moments.deviation, 1)
    for batch in np.split(rows, [1, 30, 30, 77]):
        moments.update(batch)
    np.testing.assert_allclose(moments.mean, rows.mean(0), rtol=1e-5)
    expected = np.maximum(rows.std(0), MIN_DEVIATION)
    np.testing.assert_allclose(moments.deviation, expected, rtol=1e-5)


def test_rewards_are_divided_by_the_deviation_of_discounted_returns() -> None:
    rollout = Rollout(RolloutShape(4, 1, 1, 2, masked=False))
    rollout.rewards[:, 0] = [1, 2, 4, 8]
    rollout.dones[1] = True
    rollout.steps = 4
    normalizer = RewardNormalizer(1, gamma=0.5)

    normalized = normalizer.apply(rollout)

    returns = [1, 2.5, 4, 10]  # the episode ends after the second step
    np.testing.assert_allclose(normalized.rewards[:, 0], np.array([1, 2, 4, 8]) / np.std(returns))
    assert normalizer.returns == [10]
    assert rollout.rewards[3, 0] == 8


@pytest.mark.parametrize("network", ["mlp", "gru"])
def test_an_environment_of_another_scale_is_solved_only_with_normalization(network: str) -> None:
    config = TrainConfig.from_flat(
        env="tests.train.test_normalization:Scaled",
        backend="sync",
        n_envs=32,
        total_episodes=3000,
        update_steps=4,
        learning_rate=0.02,
        reward_scale=1.0,
        hidden=(16,),
        threads=1,
        network=network,
    )
    normalized = config.with_settings(normalize_observations=True, normalize_returns=True)
    assert last_returns(normalized) > 0.9e4
    assert last_returns(config) < 0.6e4


def last_returns(config: TrainConfig) -> float:
    with Trainer(config) as trainer:
        updates = list(trainer.updates())
    return float(np.mean([value for update in updates[-5:] for value in update.finished.returns]))


@pytest.mark.parametrize("overlap", [False, True], ids=["in turn", "async"])
def test_a_stopped_run_resumes_with_its_moments(tmp_path: Path, overlap: bool) -> None:
    config = NORMALIZED.with_settings(overlap=overlap)
    whole = train_run(tmp_path / "whole", config)
    run = create_run(tmp_path / "stopped", config)
    while not runner.train(run, NullListener(), stop_after(2)):
        pass
    assert run_results(run.path) == run_results(whole)


def test_a_policy_plays_with_the_moments_of_its_run(tmp_path: Path) -> None:
    path = train_run(tmp_path / "run", NORMALIZED)
    policy = load(path, "last")
    with Trainer(NORMALIZED) as trainer:
        for _ in trainer.updates():
            pass
        features = np.random.default_rng(0).random((5, trainer.collector.shape.features))
        rows = features.astype(np.float32)
        worker = trainer.collector.worker  # type: ignore[attr-defined]
        worker.actor.load_weights(trainer.weights())
        expected = worker.actor.logits(rows, None)
    logits = policy.runtime.logits(policy._normalized(rows), None)
    np.testing.assert_array_equal(logits, expected)
    assert trainer.normalization.weights()["normalizer.mean"].any()

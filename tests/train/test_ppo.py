"""PPO: advantages, learning curves and reproducibility."""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cagepool import runs
from cagepool.envs.native import NativeVectorEnv
from cagepool.evaluate.rollout import Trial, episode_totals
from cagepool.policy.policy import Policy
from cagepool.train import runner
from cagepool.train.collectors import LocalCollector
from cagepool.train.config import PpoConfig, TrainConfig
from cagepool.train.evaluation import PERIODIC_SEED, evaluate_weights
from cagepool.train.ppo import Trainer, Update, gae_advantages, scheduled_learning_rate
from tests.environment import LIMIT_S
from tests.train.null_listener import NullListener, never

TASKS = Path("/proc/self/task")  # threads of this process, native ones too

RECALL = TrainConfig.from_flat(
    env="tests.train.toy_envs:Recall",
    backend="sync",
    n_envs=32,
    total_episodes=3000,
    update_steps=4,
    learning_rate=0.02,
    reward_scale=1.0,
    hidden=(16,),
)


def train(config: TrainConfig) -> list[Update]:
    with Trainer(config) as trainer:
        return list(trainer.updates())


@pytest.mark.parametrize("seed", range(5))
def test_an_environment_with_a_late_reward_is_solved_from_every_seed(seed: int) -> None:
    updates = train(RECALL.with_settings(seed=seed))

    first = np.mean(updates[0].finished.returns)
    last = np.mean([value for update in updates[-5:] for value in update.finished.returns])
    assert first < 0.6  # chance is 1/3 where the number was not kept
    assert last > 0.9


def test_the_environment_is_solved_with_overlapping_collection_too() -> None:
    updates = train(RECALL.with_settings(overlap=True))

    last = np.mean([value for update in updates[-5:] for value in update.finished.returns])
    assert last > 0.9
    assert [update.staleness for update in updates[:3]] == [0, 1, 1]


def test_the_score_in_cage_rises_within_two_thousand_episodes() -> None:
    config = TrainConfig.from_flat(
        red_agent="B_lineAgent", n_envs=50, total_episodes=2000, max_steps=50, n_eval_episodes=100
    )
    with Trainer(config) as trainer:
        before = evaluate_weights(config, trainer.learner.weights())
        for _ in trainer.updates():
            pass
        after = evaluate_weights(config, trainer.learner.weights())

    assert before.score < -40
    assert after.score > before.score / 2


def test_a_periodic_evaluation_gives_the_return_of_whole_episodes() -> None:
    config = TrainConfig.from_flat(red_agent="B_lineAgent", n_eval_episodes=20, hidden=(8,))
    with Trainer(config) as trainer:
        result = evaluate_weights(config, trainer.learner.weights())
    trial = Trial(episodes=20, seed=PERIODIC_SEED)
    policy = Policy(trainer.learner.weights(), config.as_dict())
    totals = episode_totals(policy, trial, "B_lineAgent")
    assert result.score == pytest.approx(totals.mean())
    assert result.return_mean == pytest.approx(totals[:, -1].mean())
    assert result.return_mean < result.score  # 100 steps lose more than 30 and 50


def test_the_learning_rate_falls_linearly_to_its_end() -> None:
    config = TrainConfig.from_flat(
        n_envs=10, total_episodes=40, max_steps=10, update_steps=10, learning_rate_end=1e-3
    )

    rates = [update.stats.learning_rate for update in train(config)]

    np.testing.assert_allclose(rates, 1e-3 + 1e-3 * np.array([1, 0.75, 0.5, 0.25]))


def test_the_learning_rate_can_stay_or_fall_along_a_cosine() -> None:
    config = PpoConfig(learning_rate=2.0, learning_rate_end=1.0)
    constant, cosine = (
        [
            scheduled_learning_rate(replace(config, learning_rate_schedule=kind), p)
            for p in (0, 0.25, 0.5, 1)
        ]
        for kind in ("constant", "cosine")
    )
    assert constant == [2, 2, 2, 2]
    np.testing.assert_allclose(cosine, [2, 1.5 + 0.5**1.5, 1.5, 1])


@pytest.mark.parametrize("overlap", [False, True])
def test_the_same_seed_gives_the_same_run(overlap: bool) -> None:
    config = TrainConfig.from_flat(
        n_envs=7, total_episodes=60, max_steps=9, update_steps=13, overlap=overlap, hidden=(16,)
    )

    assert results(train(config)) == results(train(config))


def test_another_seed_gives_another_run() -> None:
    config = TrainConfig.from_flat(
        n_envs=7, total_episodes=20, max_steps=9, update_steps=13, hidden=(16,)
    )

    assert results(train(config)) != results(train(config.with_settings(seed=1)))


@pytest.mark.parametrize("backend", ["sync", "workers"])
def test_cage_is_trained_alike_on_every_backend(backend: str) -> None:
    config = TrainConfig.from_flat(
        n_envs=4, total_episodes=20, max_steps=9, update_steps=7, hidden=(16,)
    )

    native = train(config)
    other = train(config.with_settings(backend=backend))

    assert results(native) == results(other)


def results(updates: list[Update]) -> list[object]:
    """Results of updates, without times."""
    return [
        (u.number, u.episodes, u.steps, u.finished.returns, u.finished.lengths, u.stats)
        for u in updates
    ]


def test_compliance_is_recorded_with_an_order_and_only_then(tmp_path: Path) -> None:
    games = TrainConfig.from_flat(
        n_envs=5, total_episodes=15, max_steps=30, update_steps=30, n_evals=0, n_eval_episodes=2
    )
    ordered = games.with_settings(order="critical_first", order_input=True)
    columns = {}
    for name, config in (("with", ordered), ("without", games)):
        run = runs.create(tmp_path / name, config.as_dict(), "0.1.0")
        assert runner.train(run, NullListener(), never)
        columns[name] = run.metrics()

    for column in ("compliance", "coverage", "wasted_fixes"):
        assert np.isnan(columns["without"][column]).all()
        assert np.isfinite(columns["with"][column]).any()
    assert 0 <= np.nanmean(columns["with"]["compliance"]) <= 1


def test_the_alignment_reward_is_in_the_rewards_and_not_in_the_returns() -> None:
    plain = TrainConfig.from_flat(
        n_envs=20, total_episodes=20, max_steps=60, update_steps=60, hidden=(8,)
    )
    order = {"order": "critical_first", "alignment_lambda": 30.0, "reward_scale": 1.0}
    with Trainer(plain.with_settings(**order)) as trainer:
        collected = trainer.collect()
        assert isinstance(trainer.collector, LocalCollector)
        envs = trainer.collector.worker.sampler.envs
        assert isinstance(envs, NativeVectorEnv)
        counters = envs.batch.episode_counters.copy()

    compliant, violations = counters[:, 0], counters[:, 1]
    compliance = compliant / np.maximum(compliant + violations, 1)
    # Its sum over an episode is lambda times the compliance (docs/workflow.md, section 3).
    paid = np.array(collected.episodes.returns) + 30 * compliance
    np.testing.assert_allclose(collected.rollout.rewards.sum(0), paid, atol=1e-3)
    np.testing.assert_array_equal(collected.episodes.counters, counters)
    assert compliance.any()


@pytest.mark.parametrize("overlap", [False, True])
def test_a_closed_trainer_leaves_no_thread(overlap: bool) -> None:
    before = {*TASKS.iterdir()}
    config = TrainConfig.from_flat(
        n_envs=100, total_episodes=200, max_steps=30, update_steps=30, overlap=overlap, threads=3
    )
    with Trainer(config) as trainer:
        next(trainer.updates())
        assert {*TASKS.iterdir()} - before

    deadline = (
        time.monotonic() + LIMIT_S
    )  # the kernel lists a thread a little longer than it is joined
    while {*TASKS.iterdir()} - before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert {*TASKS.iterdir()} - before == set()


def gae_by_definition(
    rewards: NDArray[np.float32],
    values: NDArray[np.float32],
    dones: NDArray[np.bool_],
    gamma: float,
    gae_lambda: float,
) -> NDArray[np.float64]:
    """Each advantage on its own: the discounted sum of the later errors of its episode."""
    steps, n_envs = rewards.shape
    result = np.zeros((steps, n_envs))
    for env in range(n_envs):
        for start in range(steps):
            weight = 1.0
            for step in range(start, steps):
                done = dones[step, env]
                next_value = 0.0 if done else float(values[step + 1, env])
                error = float(rewards[step, env]) + gamma * next_value - float(values[step, env])
                result[start, env] += weight * error
                weight *= gamma * gae_lambda
                if done:
                    break
    return result


@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(1, 12),
    n_envs=st.integers(1, 4),
    share=st.sampled_from([0.0, 0.2, 1.0]),
    gamma=st.floats(0, 1),
    gae_lambda=st.floats(0, 1),
)
def test_gae_is_the_discounted_sum_of_the_errors_of_its_episode(
    *, seed: int, steps: int, n_envs: int, share: float, gamma: float, gae_lambda: float
) -> None:
    rng = np.random.default_rng(seed)
    rewards = rng.standard_normal((steps, n_envs)).astype(np.float32)
    values = rng.standard_normal((steps + 1, n_envs)).astype(np.float32)
    dones = rng.random((steps, n_envs)) < share

    found = gae_advantages(rewards, values, dones, gamma, gae_lambda)

    assert found.dtype == np.float32
    expected = gae_by_definition(rewards, values, dones, gamma, gae_lambda)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)  # single precision


def test_gae_of_an_episode_does_not_depend_on_the_next_episode() -> None:
    rewards = np.ones((6, 1), np.float32)
    values = np.ones((7, 1), np.float32)
    dones = np.array([[False], [False], [True], [False], [False], [False]])
    before = gae_advantages(rewards, values, dones, 0.9, 0.9)

    rewards[3:] = 1e6
    values[3:] = -1e6
    after = gae_advantages(rewards, values, dones, 0.9, 0.9)

    np.testing.assert_array_equal(after[:3], before[:3])
    assert (after[3:] != before[3:]).all()

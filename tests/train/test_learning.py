"""Learning: small environments are solved, and CAGE-2 is played far better than before."""

from pathlib import Path

import numpy as np
import pytest

from cagepool import runs
from cagepool.envs.native import NativeVectorEnv
from cagepool.train import runner
from cagepool.train.collectors import LocalCrew
from cagepool.train.config import TrainConfig
from cagepool.train.evaluation import check
from cagepool.train.ppo import Trainer, Update
from tests.train.listening import Silent, never

RECALL = TrainConfig.from_flat(
    env="tests.train.scripted:Recall",
    backend="sync",
    n_envs=32,
    total_episodes=3000,
    update_steps=4,
    learning_rate=0.02,
    reward_scale=1.0,
    hidden=(16,),
)


def trained(config: TrainConfig) -> list[Update]:
    with Trainer(config) as trainer:
        return list(trainer.updates())


@pytest.mark.parametrize("seed", range(5))
def test_an_environment_with_a_late_reward_is_solved_from_every_seed(seed: int) -> None:
    updates = trained(RECALL.with_settings(seed=seed))

    first = np.mean(updates[0].finished.returns)
    last = np.mean([x for update in updates[-5:] for x in update.finished.returns])
    assert first < 0.6  # chance: 1/3 where it was not kept
    assert last > 0.9


def test_a_policy_that_collects_ahead_solves_it_too() -> None:
    updates = trained(RECALL.with_settings(overlap=True))

    last = np.mean([x for update in updates[-5:] for x in update.finished.returns])
    assert last > 0.9
    assert [update.staleness for update in updates[:3]] == [0, 1, 1]


def test_cage_is_played_far_better_after_a_few_thousand_episodes() -> None:
    config = TrainConfig.from_flat(
        red_agent="B_lineAgent", n_envs=50, total_episodes=2000, max_steps=50, n_eval_episodes=100
    )
    with Trainer(config) as trainer:
        before = check(config, trainer.learner.networks)
        for _ in trainer.updates():
            pass
        after = check(config, trainer.learner.networks)

    assert before.score < -40
    assert after.score > before.score / 2


def test_the_learning_rate_falls_from_its_start_towards_its_end() -> None:
    config = TrainConfig.from_flat(
        n_envs=10, total_episodes=40, max_steps=10, update_steps=10, learning_rate_end=1e-3
    )

    rates = [update.learning_rate for update in trained(config)]

    np.testing.assert_allclose(rates, 1e-3 + 1e-3 * np.array([1, 0.75, 0.5, 0.25]))


@pytest.mark.parametrize("overlap", [False, True])
def test_a_run_is_the_same_every_time(overlap: bool) -> None:
    config = TrainConfig.from_flat(
        n_envs=7, total_episodes=60, max_steps=9, update_steps=13, overlap=overlap, hidden=(16,)
    )

    assert numbers(trained(config)) == numbers(trained(config))


def test_another_seed_gives_another_run() -> None:
    config = TrainConfig.from_flat(
        n_envs=7, total_episodes=20, max_steps=9, update_steps=13, hidden=(16,)
    )

    assert numbers(trained(config)) != numbers(trained(config.with_settings(seed=1)))


@pytest.mark.parametrize("backend", ["sync", "workers"])
def test_cage_is_trained_alike_on_every_backend(backend: str) -> None:
    config = TrainConfig.from_flat(
        n_envs=4, total_episodes=20, max_steps=9, update_steps=7, hidden=(16,)
    )

    native = trained(config)
    other = trained(config.with_settings(backend=backend))

    assert numbers(native) == numbers(other)


def numbers(updates: list[Update]) -> list[object]:
    """All that must not depend on the time it took."""
    return [
        (u.number, u.episodes, u.steps, u.finished.returns, u.finished.lengths, u.learned)
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
        assert runner.train(run, Silent(), never)
        columns[name] = run.metrics()

    for column in ("compliance", "coverage", "wasted_fixes"):
        assert np.isnan(columns["without"][column]).all()
        assert np.isfinite(columns["with"][column]).any()
    assert 0 <= np.nanmean(columns["with"]["compliance"]) <= 1


def test_the_alignment_reward_is_learned_from_and_is_no_part_of_the_return() -> None:
    plain = TrainConfig.from_flat(
        n_envs=20, total_episodes=20, max_steps=60, update_steps=60, hidden=(8,)
    )
    order = {"order": "critical_first", "alignment_lambda": 30.0, "reward_scale": 1.0}
    with Trainer(plain.with_settings(**order)) as trainer:
        collected = trainer._collected()
        assert isinstance(trainer.crew, LocalCrew)
        envs = trainer.crew.station.collector.envs
        assert isinstance(envs, NativeVectorEnv)
        counters = envs.batch.episode_counters.copy()

    compliant, violations = counters[:, 0], counters[:, 1]
    compliance = compliant / np.maximum(compliant + violations, 1)
    # Over an episode it adds up to lambda times the compliance (docs/workflow.md, section 3).
    paid = np.array(collected.finished.returns) + 30 * compliance
    np.testing.assert_allclose(collected.rollout.rewards.sum(0), paid, atol=1e-3)
    np.testing.assert_array_equal(collected.finished.counters, counters)
    assert compliance.any()

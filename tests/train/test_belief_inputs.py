"""The belief as a policy input: the same in training, evaluation and resumed runs."""

from pathlib import Path

import numpy as np
import pytest

from cagepool import make_vec, runs
from cagepool.envs import FeatureVectorEnv
from cagepool.policy.load import load
from cagepool.policy.policy import EnvSettings, Policy, belief_config
from cagepool.sim import Batch, BatchConfig
from cagepool.sim.belief import BELIEF_FEATURES, BeliefConfig, BeliefFilter
from cagepool.sim.encoder import FeatureConfig
from cagepool.train import runner
from cagepool.train.config import TrainConfig
from cagepool.train.ppo import Trainer
from tests.train.null_listener import NullListener
from tests.train.run_results import run_results
from tests.train.short_runs import SHORT, create_run, stop_after, train_run

BELIEF = SHORT.with_settings(
    belief=True,
    clock=True,
    hosts_restored=True,
    observation=False,
    scan_memory=False,
    last_action=False,
    time_left=False,
    actions="lean",
)


def trained_policy(config: TrainConfig) -> Policy:
    """Policy of an untrained network."""
    with Trainer(config) as trainer:
        return Policy(trainer.learner.weights(), config.as_dict())


def test_the_belief_is_the_last_part_of_the_features() -> None:
    with Trainer(BELIEF) as trainer:
        rollout = trainer.collect().rollout
        belief = rollout.features[..., -BELIEF_FEATURES:]

    assert rollout.features.shape[-1] - BELIEF_FEATURES == 17 + 16 + 13
    assert ((belief >= 0) & (belief <= 1)).all()
    (end,) = np.flatnonzero(rollout.dones[:-1].all(axis=1))
    np.testing.assert_array_equal(belief[end + 1], belief[0])
    assert (belief[1:9] != belief[0]).any(axis=(1, 2)).all()


def test_a_policy_plays_with_the_belief_that_it_was_trained_with() -> None:
    config = BELIEF.with_settings(red_agent="b_line:0.6+meander:0.4", edition="leaderboard")
    with Trainer(config) as trainer:
        rollout = trainer.collect().rollout
        policy = Policy(trainer.learner.weights(), config.as_dict())
        sampler = trainer.collector.worker.sampler  # type: ignore[attr-defined]
        assert sampler.encoder.belief.config == belief_config(policy.settings.env)
    assert rollout.steps > 0


def test_reds_of_other_trainings_have_a_negligible_prior() -> None:
    config = belief_config(EnvSettings(red_agent="b_line", edition="leaderboard", green=True))

    prior = dict(zip(config.reds, config.weights or (), strict=True))
    assert prior["B_lineAgent"] == 1
    assert 0 < prior["RedMeanderAgent"] < 1e-5
    assert (config.edition, config.green) == ("leaderboard", True)


def test_games_that_start_again_do_not_disturb_the_beliefs_of_others() -> None:
    """A game that resets among others is played as if it were alone."""
    policy, alone = (trained_policy(BELIEF) for _ in range(2))
    batch = Batch(3, BatchConfig(red="meander"))
    batch.reset(np.arange(3, dtype=np.uint64))
    policy.begin(3)
    for step in range(12):
        if step == 5:
            batch.reset(np.array([9], np.uint64), ids=np.array([1]))
            policy.reset([1])
            alone.begin(1)
        actions = policy.act(batch.observations)
        if step >= 5:
            assert alone.act(batch.observations[1:2]) == actions[1]
        batch.step(actions)


@pytest.mark.parametrize("overlap", [False, True], ids=["in turn", "async"])
def test_a_run_with_beliefs_resumes_to_the_same_results(tmp_path: Path, overlap: bool) -> None:
    config = BELIEF.with_settings(overlap=overlap, critic_inputs="true", order="reverse")
    whole = train_run(tmp_path / "whole", config)
    run = create_run(tmp_path / "stopped", config)
    stops = 0
    while not runner.train(runs.open_run(run.path), NullListener(), stop_after(1 + stops * 4)):
        stops += 1

    assert stops > 1
    assert run_results(run.path) == run_results(whole)
    assert load(whole).act(np.zeros(52, np.float32)).shape == (1,)


def test_a_damaged_belief_in_a_checkpoint_is_refused() -> None:
    with Trainer(BELIEF) as trainer:
        trainer.collect()
        arrays, state = trainer.state()
    del arrays["collector.belief_states"]
    with Trainer(BELIEF) as trainer, pytest.raises(ValueError, match="belief_states"):
        trainer.restore(arrays, state)


def test_other_environments_have_no_belief() -> None:
    with pytest.raises(ValueError, match="belief needs CAGE-2, got CartPole-v1 with auto"):
        SHORT.with_settings(belief=True, env="CartPole-v1")


def test_environments_show_the_belief_of_the_encoder() -> None:
    config = FeatureConfig(belief=True, actions="lean")
    envs = make_vec(3, autoreset="same_step", max_steps=6, red="meander")
    with pytest.raises(ValueError, match="the feature belief needs its settings"):
        FeatureVectorEnv(envs, config)
    shown = FeatureVectorEnv(envs, config, max_steps=6, belief=BeliefConfig())
    belief = BeliefFilter(3, BeliefConfig())
    expected = np.zeros((3, BELIEF_FEATURES), np.float32)
    rows, _ = shown.reset(seed=0)
    for step in range(8):
        belief.write_features(expected)
        np.testing.assert_array_equal(rows[:, -BELIEF_FEATURES:], expected)
        rows, *_ = shown.step(np.full(3, step))
        if step == 5:
            belief.reset()
        else:
            belief.update(shown.action_indices[[step] * 3], envs.observations)

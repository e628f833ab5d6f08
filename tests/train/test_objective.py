"""The objective of a training: lengths, weights of reds and biases at the start."""

from pathlib import Path

import numpy as np
import pytest

from cagepool import runs
from cagepool.sim.masks import action_set
from cagepool.sim.names import ACTIONS
from cagepool.train import runner
from cagepool.train.collectors import LocalCollector
from cagepool.train.config import TrainConfig
from cagepool.train.ppo import Trainer
from tests.train.null_listener import NullListener
from tests.train.run_results import run_results
from tests.train.short_runs import SHORT, create_run, stop_after, train_run

LENGTHS = (3, 5, 9)
PLAIN = SHORT.with_settings(red_agent="b_line", reward_scale=1.0, update_steps=27)
WEIGHTED = PLAIN.with_settings(lengths="3,5,9")


def collect(config: TrainConfig) -> LocalCollector:
    """Collector after one rollout of the untrained policy."""
    with Trainer(config) as trainer:
        trainer.collect()
        assert isinstance(trainer.collector, LocalCollector)
        return trainer.collector


def test_every_reward_counts_once_per_length_that_is_still_running() -> None:
    plain, weighted = (collect(config).worker.buffers[0] for config in (PLAIN, WEIGHTED))

    np.testing.assert_array_equal(plain.actions, weighted.actions)
    weights = np.array([3, 3, 3, 2, 2, 1, 1, 1, 1] * 3, np.float32)
    np.testing.assert_allclose(weighted.rewards, plain.rewards * weights[:, None], rtol=1e-6)
    assert plain.rewards.any()


def test_the_weighted_return_of_an_episode_is_the_sum_of_its_scores() -> None:
    plain, weighted = (collect(config).worker.buffers[0] for config in (PLAIN, WEIGHTED))

    episode = slice(9, 18)
    scores = [plain.rewards[episode][:length].sum(0) for length in LENGTHS]
    np.testing.assert_allclose(weighted.rewards[episode].sum(0), np.sum(scores, 0), rtol=1e-5)


def test_the_value_ends_with_the_longest_length() -> None:
    assert collect(PLAIN).worker.buffers[0].truncations
    assert not collect(WEIGHTED).worker.buffers[0].truncations


def test_lengths_beyond_the_end_of_an_episode_count_as_its_length() -> None:
    settings = {"lengths": "100,30,50", "max_steps": 40}
    assert TrainConfig.from_flat(**settings).env.score_lengths == (30, 40)
    assert TrainConfig.from_flat(lengths="100,30,50").env.score_lengths == (30, 50, 100)


def test_logged_returns_are_official_whatever_the_lengths() -> None:
    finished = []
    for config in (PLAIN, WEIGHTED):
        with Trainer(config) as trainer:
            finished.append(trainer.collect().episodes.returns)
    assert finished[0] == finished[1]
    assert any(finished[0])


def test_a_policy_starts_with_the_biases_of_its_kinds_of_actions() -> None:
    config = SHORT.with_settings(actions="lean", start_bias="Restore=-2,Decoy=0.5")
    names = [ACTIONS[action] for action in action_set("lean")]
    expected = [
        -2.0 * name.startswith("Restore") + 0.5 * name.startswith("Decoy") for name in names
    ]

    with Trainer(config) as trainer:
        biases = trainer.state()[0]["actor.2.bias"]
        rollout = trainer.collect().rollout

    np.testing.assert_array_equal(biases, np.array(expected, np.float32))
    restored = [names[choice].startswith("Restore") for choice in rollout.actions.ravel()]
    assert np.mean(restored) < 8 / 33 / 2


@pytest.mark.parametrize("overlap", [False, True], ids=["in turn", "async"])
def test_a_run_with_lengths_and_weighted_reds_resumes_to_the_same_results(
    tmp_path: Path, overlap: bool
) -> None:
    config = SHORT.with_settings(
        overlap=overlap,
        lengths="3,5,9",
        gamma=1.0,
        red_agent="b_line:0.5+meander:0.4+sleep:0.1",
        actions="lean",
        start_bias="Restore=-2",
    )
    whole = train_run(tmp_path / "whole", config)
    run = create_run(tmp_path / "stopped", config)
    stops = 0
    while not runner.train(runs.open_run(run.path), NullListener(), stop_after(1 + stops * 4)):
        stops += 1

    assert stops > 1
    assert run_results(run.path) == run_results(whole)

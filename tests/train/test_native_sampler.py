"""Rollouts that the core plays in one call, beside the same rollouts played step by step."""

from typing import Any

import numpy as np
import pytest

from cagepool import _core
from cagepool.bench.train import PLAIN_FEATURES
from cagepool.scenarios import CAGE2, Layout
from cagepool.sim import dtypes
from cagepool.sim.batch import Batch, BatchConfig
from cagepool.sim.belief import BeliefFilter
from cagepool.sim.encoder import FeatureConfig, FeatureEncoder, GameScenarios
from cagepool.train.collectors import RolloutWorker, split_shards
from cagepool.train.config import TrainConfig
from cagepool.train.ppo import make_learner
from cagepool.train.rollout import Rollout
from cagepool.train.samplers import EnvSampler, NativeSampler
from tests.scenarios.files import sample

SMALL: dict[str, Any] = {
    "n_envs": 70,  # more than the core plays in one part
    "max_steps": 20,
    "update_steps": 33,
    "total_episodes": 200,
    "hidden": (8,),
}
HISTORY_BYTES = dtypes.HISTORY.itemsize
ARRAYS = ("features", "action_masks", "critic_features", "actions", "log_probs", "rewards", "dones")


def collect_all(**settings: Any) -> list[dict[str, Any]]:
    """Contents of all rollouts of a run, and the episodes that ended."""
    config = TrainConfig.from_flat(**SMALL | settings)
    (shard,) = split_shards(config, 1)
    worker = RolloutWorker(config, shard)
    worker.actor.load_weights(make_learner(config.ppo, worker.shape, seed=1).weights())
    contents = []
    while not worker.sampler.is_finished:
        collected = worker.collect()
        contents.append({**arrays_of(collected.rollout), **vars(collected.episodes)})
    contents.append(worker.state()[0])
    worker.close()
    return contents


def arrays_of(rollout: Rollout) -> dict[str, Any]:
    arrays = {name: getattr(rollout, name) for name in (*ARRAYS, "counted")}
    ends = [(end.step, end.env_ids, end.features) for end in rollout.truncations]
    filled = {name: a[: rollout.steps].copy() for name, a in arrays.items() if a is not None}
    return {**filled, "last": rollout.features[rollout.steps].copy(), "ends": ends}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"threads": 2, "red_agent": "mix", "green": True},
        {"lengths": "10,20", "gamma": 1.0, "critic_inputs": "true"},
        {"action_masking": False, "edition": "leaderboard", "actions": "all"},
        {"order": "balanced", "early_stopping": False},
        {"belief": True, "threads": 2, "actions": "lean", "red_agent": "mix"},
        {"scenario": "cage2/users:train", "clock": True, "threads": 2},
    ],
    ids=["default", "threads", "lengths", "unmasked", "order", "belief", "scenarios"],
)
def test_the_core_plays_what_single_steps_play(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    in_core = collect_all(**settings)
    monkeypatch.setattr(NativeSampler, "_play", EnvSampler._play)
    step_by_step = collect_all(**settings)

    assert len(in_core) == len(step_by_step) > 2
    for ours, expected in zip(in_core, step_by_step, strict=True):
        np.testing.assert_equal(ours, expected)


def play_arguments(games: int, steps: int) -> dict[str, Any]:
    """Arguments of `play_rollout` for a policy with the 52 values of the observation."""
    encoder = FeatureEncoder(PLAIN_FEATURES, games, horizon=5)
    actor = _core.MlpActor(widths=[encoder.size, 145], activation=_core.Activation.TANH, threads=1)
    cells = games * steps
    return {
        "actor": actor,
        "parameters": np.zeros(actor.size, np.float32),
        "encoder": encoder.core,
        "belief": None,
        "steps": steps,
        "uniforms": np.zeros(cells, np.float32),
        "features": np.zeros((cells + games, encoder.size), np.float32),
        "masks": None,
        "critic_features": None,
        "chosen": np.zeros(cells, np.int64),
        "log_probabilities": np.zeros(cells, np.float32),
        "rewards": np.zeros(cells, np.float32),
        "histories": dtypes.as_bytes(encoder.history),
        "returns": np.zeros(games),
        "lengths": np.zeros(games, np.int64),
        "reward_weights": None,
        "reward_scale": 1.0,
    }


def blocks_of(name: str) -> FeatureEncoder:
    """Encoder of two games of a scenario."""
    scenario = CAGE2 if name == "cage2" else sample(name)
    games = GameScenarios((scenario,), Layout.of([scenario]), np.zeros(2, np.int32))
    return FeatureEncoder(FeatureConfig(), games, horizon=5, blocks=True)


@pytest.mark.parametrize(
    ("steps", "changes", "message"),
    [
        (5, {}, "no episode may end within 5 steps; that of game 0 does"),
        (2, {"encoder": blocks_of("users_plus2").core}, "the actions of the batch"),
        (2, {"encoder": blocks_of("cage2").core}, "inputs and outputs of the actor"),
        (2, {"reward_weights": np.ones(1, np.float32)}, "a reward weight for every step"),
        (2, {"lengths": np.array([-1, 0]), "reward_weights": np.ones(9, np.float32)}, "weight"),
        (
            2,
            {"histories": np.full((2, dtypes.HISTORY.itemsize), 255, np.uint8)},
            "histories must be",
        ),
        (2, {"uniforms": np.zeros(3, np.float32)}, "uniforms must have 4"),
        (2, {"belief": BeliefFilter(3).core}, "the belief must be about the games"),
    ],
)
def test_steps_that_do_not_fit_are_refused_and_play_nothing(
    steps: int, changes: dict[str, Any], message: str
) -> None:
    batch = Batch(2, BatchConfig(max_steps=5, autoreset="same_step"))
    batch.reset(np.arange(2, dtype=np.uint64))
    before = batch.save(np.arange(2))

    with pytest.raises(ValueError, match=message):
        batch.core.play_rollout(**play_arguments(2, steps) | changes)

    assert batch.save(np.arange(2)) == before
    batch.core.play_rollout(**play_arguments(2, 4))
    assert batch.core.steps(0) == 4

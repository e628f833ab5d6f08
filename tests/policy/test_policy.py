"""Policies as they are played, against the networks and the collector they were trained with."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cagepool import runs
from cagepool.envs.native import NativeVectorEnv
from cagepool.policy.load import load_run as load
from cagepool.policy.native import NativeRuntime
from cagepool.policy.networks import make_mlp
from cagepool.policy.policy import Policy, PolicySettings, feature_encoder
from cagepool.train.config import TrainConfig
from cagepool.train.learner import initial_weights
from cagepool.train.native_learner import NativeActor
from cagepool.train.ppo import make_learner
from cagepool.train.rollout import Rollout, RolloutShape
from cagepool.train.samplers import EnvSampler
from cagepool.types import Arrays
from tests.evaluate.folders import add_checkpoint, make_run
from tests.sim.games import start_batch

GAMES, STEPS = 5, 40


CONFIGS = {
    "usual": TrainConfig.from_flat(max_steps=7),
    "relu, one layer": TrainConfig.from_flat(max_steps=7, hidden=(16,), activation="relu"),
    "all actions, no masks": TrainConfig.from_flat(
        max_steps=7, actions="all", action_masking=False
    ),
    "order": TrainConfig.from_flat(max_steps=7, order="reverse", order_input=True),
    "nothing but observations": TrainConfig.from_flat(
        max_steps=7, scan_memory=False, decoys_placed=False, last_action=False, time_left=False
    ),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_policy_sees_the_features_of_the_rollout_in_whole_games(config: TrainConfig) -> None:
    inputs = feature_encoder(PolicySettings.from_dict(config.as_dict()), GAMES)
    envs = NativeVectorEnv(GAMES, autoreset="same_step", copy=False, red="mix", max_steps=7)
    sampler = EnvSampler(envs, inputs, 1000, 1.0, np.random.default_rng(0))
    masked = config.features.action_masking
    shape = RolloutShape(STEPS, GAMES, inputs.size, inputs.n_choices, masked)
    rollout = Rollout(shape)
    sampler.reset(3, rollout)
    actor = NativeActor(config.ppo, shape)
    weights = loud(make_learner(config.ppo, shape, seed=1).weights())
    actor.load_weights(weights)
    sampler.collect(actor, rollout)

    policy = Policy(weights, config.as_dict())
    policy.begin(GAMES)
    for step in range(STEPS):
        logits = policy.logits(np.ascontiguousarray(rollout.features[step, :, :52]))
        allowed = logits > -1e29
        if rollout.action_masks is not None:
            np.testing.assert_array_equal(allowed, rollout.action_masks[step])
        np.testing.assert_array_equal(policy._rows, rollout.features[step])
        expected = actor.logits(rollout.features[step])[allowed]
        np.testing.assert_array_equal(logits[allowed], expected)
        policy.record(inputs.action_indices[rollout.actions[step]])
        policy.reset(np.flatnonzero(rollout.dones[step]))
    assert rollout.dones.sum() > GAMES


def loud(weights: Arrays) -> Arrays:
    """A fresh policy is almost even; this one has opinions."""
    return {name: 3 * array for name, array in weights.items()}


def test_one_observation_gets_one_action_and_many_the_same(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    batch = start_batch(4, red="b_line")
    alone, together = load(run), load(run)
    together.begin(4)
    for _ in range(5):
        actions = together.act(batch.observations)
        assert actions.dtype == np.int64
        assert alone.act(batch.observations[2]).tolist() == [actions[2]]
        batch.step(actions)


def test_a_policy_forgets_when_the_number_of_games_changes(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    used, fresh = load(run), load(run)
    used.act(start_batch(3).observations)

    first = start_batch(6).observations

    np.testing.assert_array_equal(used.act(first), fresh.act(first))


def test_actions_are_drawn_by_their_probabilities(tmp_path: Path) -> None:
    policy = load(make_run(tmp_path / "run"))
    games = 4000
    seen = np.repeat(start_batch(1).observations, games, 0)
    logits = policy.logits(seen)[0].astype(np.float64)
    policy.begin(games)

    drawn = policy.act(seen, greedy=False, rng=np.random.default_rng(0))

    shares = np.exp(logits - logits.max())
    shares /= shares.sum()
    numbers = policy._encoder.action_indices
    counts = np.array([(drawn == number).sum() for number in numbers])
    assert counts.sum() == games
    # Five standard deviations of a count.
    assert (abs(counts - games * shares) <= 5 * np.sqrt(games * shares) + 1e-9).all()


def first_weight(policy: Policy) -> float:
    assert isinstance(policy.runtime, NativeRuntime)
    return float(policy.runtime.layers[0][0][0, 0])


def test_the_best_policy_is_loaded_unless_the_last_is_asked_for(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run", network=1)
    add_checkpoint(path, 2, "last")

    best, last = load(path), load(path, "last")

    assert first_weight(best) == first_weight(load(path, "best")) != first_weight(last)


def test_the_last_policy_stands_in_where_there_is_no_best_one(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run", kind="last")
    assert first_weight(load(path)) == first_weight(load(path, "last"))


def damaged_config(path: Path, **changed: Any) -> None:
    content = json.loads((path / runs.CONFIG).read_text())
    (path / runs.CONFIG).write_text(json.dumps(content | changed))


def damaged_settings(path: Path, **changed: Any) -> None:
    content = json.loads((path / runs.CONFIG).read_text())
    settings = content["settings"]
    for name, value in changed.items():
        group = next(group for group in settings.values() if name in group)
        group[name] = value
    damaged_config(path, settings=settings)


def cut_json(path: Path) -> None:
    text = (path / runs.CONFIG).read_text()
    (path / runs.CONFIG).write_text(text[: len(text) // 2])


def flip_a_byte(path: Path) -> None:
    (weights,) = path.glob("checkpoints/*/weights.safetensors")
    content = bytearray(weights.read_bytes())
    content[-7] ^= 1
    weights.write_bytes(content)


def lose_weights(path: Path) -> None:
    (weights,) = path.glob("checkpoints/*/weights.safetensors")
    weights.unlink()


def save_others(path: Path) -> None:
    arrays: Arrays = {"something": np.zeros(3)}
    runs.open_run(path).save_checkpoint("best", arrays, {"update": 9})


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (cut_json, "config.json is damaged: "),
        (lambda path: damaged_config(path, format=3), "format 3, this cagepool reads up to 1"),
        (lambda path: damaged_config(path, format="x"), "damaged: expected `int`, got `str`"),
        (lambda path: damaged_config(path, settings=3), "damaged: expected `object`, got `int`"),
        (lambda path: (path / runs.CONFIG).unlink(), "must be a folder with config.json"),
        (flip_a_byte, "weights are not those that were saved"),
        (lose_weights, "must be a file that can be read: No such file"),
        (save_others, "is damaged: "),
        (lambda path: damaged_settings(path, actions="all"), "does not fit its settings"),
        (lambda path: damaged_settings(path, actions="most"), "damaged: invalid enum value 'most'"),
        (lambda path: damaged_settings(path, activation="sin"), "damaged: .*'sin'"),
        (lambda path: damaged_settings(path, max_steps="many"), "damaged: "),
        (lambda path: damaged_settings(path, scan_memory=False), "does not fit its settings"),
    ],
    ids=[
        "cut", "newer", "foreign", "no settings", "no config", "flipped", "no weights",
        "other weights", "other actions", "unknown actions", "activation", "type", "other inputs",
    ],
)  # fmt: skip
def test_a_damaged_run_is_refused_in_one_sentence(
    tmp_path: Path, damage: Any, sentence: str
) -> None:
    path = make_run(tmp_path / "run")
    load(path)
    damage(path)

    with pytest.raises(ValueError, match=sentence) as refusal:
        load(path)

    assert "\n" not in str(refusal.value)


def test_defaults_of_a_policy_are_those_of_a_training() -> None:
    assert PolicySettings() == PolicySettings.from_dict(TrainConfig().as_dict())


def test_an_unknown_feature_is_refused(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run")
    content = json.loads((path / runs.CONFIG).read_text())
    content["settings"]["features"]["smell"] = True
    (path / runs.CONFIG).write_text(json.dumps(content))

    with pytest.raises(ValueError, match="run is damaged: features must be known ones, got smell"):
        load(path)


def test_a_folder_that_is_no_run_and_a_policy_that_is_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must be a folder with config"):
        load(tmp_path)
    with pytest.raises(ValueError, match="which must be best or last, got 'first'"):
        load(make_run(tmp_path / "run"), "first")


def test_a_run_without_a_checkpoint_has_no_policy(tmp_path: Path) -> None:
    run = runs.create(tmp_path / "run", TrainConfig().as_dict(), "0.1.0")
    with pytest.raises(ValueError, match="must have a checkpoint"):
        load(run.path)


def test_a_policy_of_another_environment_takes_observations_as_they_are() -> None:
    weights = loud(initial_weights([3, 8, 2], [3, 8, 1], seed=0))
    settings = TrainConfig.from_flat(env="CartPole-v1", hidden=(8,)).as_dict()
    rows = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)

    actions = Policy(weights, settings).act(rows)

    actor = make_mlp((3, 8, 2), "tanh")
    actor.load_state_dict(
        {
            name.removeprefix("actor."): torch.from_numpy(array)
            for name, array in weights.items()
            if name.startswith("actor.")
        }
    )
    assert actions.tolist() == actor(torch.from_numpy(rows)).argmax(1).tolist()

"""The true state as input of the critic: its content, and that the actor never sees it."""

from pathlib import Path

import numpy as np
import pytest

from cagepool import _core, runs
from cagepool.policy.load import load
from cagepool.sim import Batch
from cagepool.sim.masks import action_set
from cagepool.sim.names import HOSTS
from cagepool.train import runner
from cagepool.train.config import TrainConfig
from cagepool.train.ppo import Trainer
from cagepool.types import Float32s
from tests.sim.games import start_batch, trace_rows
from tests.train.null_listener import NullListener
from tests.train.run_results import run_results
from tests.train.short_runs import SHORT, create_run, stop_after, train_run

GAMES, STEPS = 40, 30
TRUE = SHORT.with_settings(critic_inputs="true", order=None)


def critic_rows(batch: Batch, features: Float32s, *, final: bool = False) -> Float32s:
    columns = features.shape[1] + _core.TRUE_STATE_FEATURES
    rows = np.full((batch.games, columns), np.nan, np.float32)
    batch.core.write_critic_features(features, rows, final)
    return rows


def play(batch: Batch, steps: int, seed: int = 1) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        batch.step(rng.choice(action_set("lean"), batch.games))


def test_a_row_holds_the_features_and_the_sessions_knowledge_and_plan_of_red() -> None:
    batch = start_batch(GAMES, red="mix", max_steps=100)
    play(batch, STEPS)
    features = np.random.default_rng(0).random((GAMES, 7)).astype(np.float32)

    rows = critic_rows(batch, features)

    np.testing.assert_array_equal(rows[:, :7], features)
    state, trace = batch.true_state, trace_rows(batch)
    hosts = rows[:, 7 : 7 + 13 * len(HOSTS)].reshape(GAMES, 13, len(HOSTS))
    for place, name in enumerate(("privileged", "user_seen", "user_unseen", "malware")):
        np.testing.assert_array_equal(hosts[:, place], state[name] > 0)
    np.testing.assert_array_equal(hosts[:, 4], trace["s_known_ip"])
    np.testing.assert_array_equal(hosts[:, 5], trace["s_known_host"])
    reds = rows[:, -23:-19]
    np.testing.assert_array_equal(reds.argmax(1), state["red"])
    positions = rows[:, -19:-4]
    is_b_line = state["red"] == 0
    np.testing.assert_array_equal(positions.argmax(1)[is_b_line], trace["s_bline_pos"][is_b_line])
    assert not positions[~is_b_line].any()
    assert hosts[:, 0].sum() > GAMES
    shares = rows[:, 7:][:, ~np.isin(rows[:, 7:], (0, 1)).all(axis=0)]
    np.testing.assert_allclose(shares, np.full((GAMES, 1), STEPS / 100))


def test_last_states_are_those_before_the_reset() -> None:
    seed = np.arange(GAMES, dtype=np.uint64)
    going, ending = (
        start_batch(GAMES, red="mix", max_steps=STEPS, autoreset=mode)
        for mode in ("disabled", "same_step")
    )
    for batch in (going, ending):
        batch.reset(seed)
        play(batch, STEPS)
    nothing = np.zeros((GAMES, 0), np.float32)

    last = critic_rows(ending, nothing, final=True)

    np.testing.assert_array_equal(last, critic_rows(going, nothing))
    assert (last != critic_rows(ending, nothing)).any()
    with pytest.raises(ValueError, match="need autoreset same_step"):
        critic_rows(going, nothing, final=True)


def test_arrays_that_do_not_fit_are_refused() -> None:
    batch = start_batch(GAMES)
    features = np.zeros((GAMES, 3), np.float32)
    with pytest.raises(ValueError, match=r"critic_features must have \d+ columns, got 3"):
        batch.core.write_critic_features(features, np.zeros((GAMES, 3), np.float32))
    with pytest.raises(ValueError, match=f"features must have {GAMES} rows, got 1"):
        batch.core.write_critic_features(features[:1], np.zeros((1, 300), np.float32))


def test_the_actor_does_not_see_the_true_state() -> None:
    same, true = (collect_shapes(config) for config in (SHORT, TRUE))
    assert same["actor.0.weight"] == true["actor.0.weight"]
    assert true["critic.0.weight"][1] == same["critic.0.weight"][1] + _core.TRUE_STATE_FEATURES


def collect_shapes(config: TrainConfig) -> dict[str, tuple[int, ...]]:
    with Trainer(config) as trainer:
        return {name: array.shape for name, array in trainer.learner.weights().items()}


def test_the_first_actions_do_not_depend_on_the_inputs_of_the_critic() -> None:
    actions = []
    for config in (SHORT, TRUE):
        with Trainer(config) as trainer:
            actions.append(trainer.collect().rollout.actions.copy())
    np.testing.assert_array_equal(actions[0], actions[1])


@pytest.mark.parametrize("overlap", [False, True], ids=["in turn", "async"])
def test_a_run_whose_critic_sees_the_true_state_resumes_and_plays(
    tmp_path: Path, overlap: bool
) -> None:
    config = TRUE.with_settings(overlap=overlap, gamma=0.9)
    whole = train_run(tmp_path / "whole", config)
    run = create_run(tmp_path / "stopped", config)
    stops = 0
    while not runner.train(runs.open_run(run.path), NullListener(), stop_after(1 + stops * 4)):
        stops += 1

    assert stops > 1
    assert run_results(run.path) == run_results(whole)
    policy = load(whole)
    policy.begin(2)
    assert policy.act(np.zeros((2, 52), np.float32)).shape == (2,)


@pytest.mark.parametrize("env", [{"backend": "sync"}, {"env": "CartPole-v1"}])
def test_only_native_games_show_their_true_state(env: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="critic_inputs true needs cagepool/CAGE2-v0 with"):
        SHORT.with_settings(critic_inputs="true", **env)

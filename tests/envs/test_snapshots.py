"""Snapshots, true states and action masks of native games."""

from typing import Any

import numpy as np
import pytest

from cagepool import make_vec
from cagepool.envs import NativeVectorEnv
from cagepool.sim import ActionMasks
from cagepool.sim.names import action_index, host_index
from tests.envs.contract import MODES, actions_for, assert_same, play


def played(num_envs: int = 4, steps: int = 15, **options: Any) -> NativeVectorEnv:
    envs: NativeVectorEnv = make_vec(num_envs, red="RedMeanderAgent", statistics=False, **options)
    envs.reset(seed=1)
    play(envs, actions_for(num_envs, steps))
    return envs


@pytest.mark.parametrize("mode", MODES)
def test_restored_games_go_on_as_they_did(mode: Any) -> None:
    envs = played(autoreset=mode, max_steps=20, order="balanced")
    blobs, seen, rest = envs.save([0, 1, 2, 3]), envs.observations.copy(), actions_for(4, 40, 1)
    once = play(envs, rest)
    envs.restore([0, 1, 2, 3], blobs)
    np.testing.assert_array_equal(envs.observations, seen)
    assert_same(play(envs, rest), once)


def test_games_can_be_restored_elsewhere() -> None:
    envs, other = played(), make_vec(2, statistics=False)
    other.reset(seed=50)
    other.restore(np.array([1, 0]), envs.save((2, 3)))
    for row in actions_for(4, 30, 1):
        assert_same(envs.step(row)[0][[3, 2]], other.step(row[[3, 2]])[0])


def test_restored_games_need_no_reset() -> None:
    envs, other = played(2), make_vec(2, statistics=False)
    other.restore([0, 1], envs.save([0, 1]))
    assert_same(play(envs, actions_for(2, 20)), play(other, actions_for(2, 20)))


def test_after_a_restored_game_comes_the_next_of_its_stream() -> None:
    envs, other = played(2), make_vec(2, statistics=False)
    other.restore([0, 1], envs.save([0, 1]))
    for one in (envs, other):
        one.reset()
    assert_same(play(envs, actions_for(2, 20)), play(other, actions_for(2, 20)))


def test_copies_go_on_alike_until_they_are_reseeded() -> None:
    envs = played(40)
    envs.copy([0] * 20, range(20, 40))
    envs.copy([0] * 19, range(1, 20))
    envs.reseed(range(20, 40), range(100, 120))
    seen = np.stack([envs.step([1] * 40)[0] for _ in range(30)])
    assert np.all(seen[:, :20] == seen[:, :1])
    assert len({seen[:, game].tobytes() for game in range(20, 40)}) > 10


@pytest.mark.parametrize(
    ("ids", "blob", "error", "sentence"),
    [
        ([1], b"nonsense", ValueError, "a snapshot must be"),
        ([1], None, IndexError, "a game's index must be below 4, got 9"),
        ([1.5], b"", TypeError, "ids must be integers, got float64"),
        ([[1]], b"", ValueError, "ids must have one dimension"),
    ],
    ids=["damaged", "no such game", "no index", "no row"],
)
def test_a_wrong_snapshot_or_game_is_refused_and_nothing_is_changed(
    ids: Any, blob: bytes | None, error: type[Exception], sentence: str
) -> None:
    envs = played()
    before = envs.save(range(4))
    with pytest.raises(error, match=sentence):
        envs.restore(ids if blob is not None else [9], [blob or before[0]])
    assert envs.save(range(4)) == before


def test_a_wrong_seed_is_refused_when_reseeding() -> None:
    with pytest.raises(ValueError, match="a seed must be from 0"):
        played().reseed([0], [-1])


def test_the_true_state_is_current_and_cannot_be_written() -> None:
    envs = make_vec(2, red="given")
    envs.reset(seed=0)
    truth = envs.true_state
    assert truth.access.shape == (2, 13)
    assert not truth.decoys.any()
    envs.step([action_index("DecoyTomcat User2"), 0], [0, 0])
    where = np.argwhere(truth.decoys)
    assert where.tolist() == [[0, host_index("User2")]]
    with pytest.raises(ValueError, match="read-only"):
        truth.access[0] = 1


def test_the_dictionary_form_is_that_of_the_game() -> None:
    envs = played()
    sessions = [
        sum(session["Agent"] == "Red" for session in host["Sessions"])
        for name, host in envs.true_state_dict(2).items()
        if name != "success"
    ]
    truth = envs.true_state
    held = (truth.privileged + truth.user_seen + truth.user_unseen)[2]
    assert sum(sessions) == held.sum()


@pytest.mark.parametrize("edition", ["2.1", "leaderboard"])
@pytest.mark.parametrize("mode", MODES)
def test_masks_are_those_of_blues_own_actions(mode: Any, edition: str) -> None:
    leave: Any = {"monitor": False, "defender": False, "user0": True}
    envs = make_vec(20, edition=edition, max_steps=40, autoreset=mode, red="mix")
    envs.reset(seed=0)
    history = ActionMasks(20, **leave)
    generator = np.random.default_rng(3)
    for _ in range(100):
        decoys = generator.integers(28, 132, 20)
        row = np.where(generator.random(20) < 0.9, decoys, generator.integers(0, 145, 20))
        *_, truncations, _ = envs.step(row)
        history.update(envs.batch.moves["blue_action"])
        if truncations.any():
            history.reset(np.flatnonzero(truncations))
            if mode == "next_step":
                row = generator.integers(0, 145, 20)
                envs.step(row)
            elif mode == "disabled":
                envs.reset(options={"reset_mask": truncations})
        np.testing.assert_array_equal(envs.action_masks(**leave), history.masks)


def test_masks_follow_restored_games() -> None:
    envs = make_vec(1)
    envs.reset(seed=3)
    before = envs.save([0])
    decoy = action_index("DecoyTomcat User2")
    envs.step([decoy])
    assert not envs.action_masks()[0, decoy]
    envs.restore([0], before)
    assert envs.action_masks()[0, decoy]

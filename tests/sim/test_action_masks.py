"""Action masks against the game itself."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cagepool.sim import ActionMasks, action_masks
from cagepool.sim.names import ACTIONS, HOSTS, action_index
from tests.sim.games import ACTION_INDICES, SEEDS, int64s, start_batch

IS_DECOY = np.array([name.startswith("Decoy") for name in ACTIONS])
HORIZON = 12


@given(seed=SEEDS, games=st.lists(st.lists(ACTION_INDICES, min_size=3, max_size=3), max_size=40))
@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
def test_a_decoy_can_be_placed_exactly_if_it_is_not_masked(
    seed: int, games: list[list[int]], autoreset: str
) -> None:
    batch = start_batch(3, seed, red="mix", max_steps=HORIZON, autoreset=autoreset)
    masks = ActionMasks(3)
    for step in games:
        played = int64s(step)
        allowed = masks.masks[np.arange(3), played]
        batch.step(played)
        counted = IS_DECOY[played] & (batch.moves["blue_action"] == played)
        np.testing.assert_array_equal(batch.moves["blue_success"][counted] == 1, allowed[counted])
        masks.update(batch.moves["blue_action"])
        masks.reset(np.flatnonzero(batch.truncations))
        if autoreset == "same_step" or not batch.truncations.any():
            by_decoys = action_masks(batch.true_state["decoys"])
            np.testing.assert_array_equal(by_decoys, masks.masks)


@pytest.mark.parametrize("host", range(len(HOSTS)), ids=HOSTS)
def test_every_decoy_of_a_host_is_judged_as_the_game_does(host: int) -> None:
    """All pairs of decoys, each in a game of its own."""
    decoys = [index for index in np.flatnonzero(IS_DECOY) if index % 13 == (2 + host) % 13]
    first, second = (int64s(column) for column in zip(*product(decoys, decoys), strict=True))
    batch, masks = start_batch(64, red="sleep"), ActionMasks(64)
    for played in (first, second, int64s([action_index(f"Restore {HOSTS[host]}")] * 64), first):
        allowed = masks.masks[np.arange(64), played] & IS_DECOY[played]
        batch.step(played)
        masks.update(played)
        np.testing.assert_array_equal(
            (batch.moves["blue_success"] == 1) & IS_DECOY[played], allowed
        )


def test_everything_but_a_decoy_may_always_be_played() -> None:
    masks = ActionMasks(4)
    rng = np.random.default_rng(0)
    for _ in range(200):
        masks.update(rng.integers(0, 145, 4))
    assert masks.masks[:, ~IS_DECOY].all()


@pytest.mark.parametrize(
    ("option", "word"), [("monitor", "Monitor"), ("defender", "Defender"), ("user0", "User0")]
)
def test_actions_can_be_left_out_for_good(option: str, word: str) -> None:
    named = np.array([name.endswith(word) for name in ACTIONS])
    flags: Any = {option: False}
    whole, masks = ActionMasks(2), ActionMasks(2, **flags)
    rng = np.random.default_rng(0)
    for _ in range(100):
        played = rng.integers(0, 145, 2)
        whole.update(played)
        masks.update(played)
        assert not masks.masks[:, named].any()
        np.testing.assert_array_equal(masks.masks[:, ~named], whole.masks[:, ~named])


def test_vsftpd_may_be_repeated_and_keeps_apache_out() -> None:
    apache, vsftpd = action_index("DecoyApache Op_Host1"), action_index("DecoyVsftpd Op_Host1")
    masks = ActionMasks(1)
    masks.update(int64s([vsftpd]))
    assert (masks.masks[0, apache], masks.masks[0, vsftpd]) == (False, True)


def test_only_the_games_that_are_named_change() -> None:
    tomcat = action_index("DecoyTomcat User1")
    masks = ActionMasks(3)
    masks.update(int64s([tomcat]), ids=int64s([1]))
    assert masks.masks[:, tomcat].tolist() == [True, False, True]
    masks.update(int64s([tomcat] * 3))
    masks.reset(int64s([2]))
    assert masks.masks[:, tomcat].tolist() == [False, False, True]
    masks.reset()
    assert masks.masks[:, tomcat].all()


def test_bad_actions_are_refused_and_change_nothing() -> None:
    masks = ActionMasks(2)
    tomcat = action_index("DecoyTomcat User1")
    with pytest.raises(IndexError, match="action of game 1 must be below 145, got 145"):
        masks.update(int64s([tomcat, 145]))
    with pytest.raises(IndexError, match="action of game 1 must be below 145, got -1"):
        masks.update(int64s([-1]), ids=int64s([1]))
    with pytest.raises(ValueError, match="one action per game, got 1 for 2 games"):
        masks.update(int64s([tomcat]))
    with pytest.raises(ValueError, match="at least 1 game, got 0"):
        ActionMasks(0)
    assert masks.masks[:, tomcat].all()

"""Observations and masks of a learning red, and that it can play all that scripted reds play."""

import numpy as np
import pytest
from numpy.typing import NDArray

from cagepool import _core
from cagepool.sim import Batch, BatchConfig
from cagepool.sim.names import HOSTS, RED_ACTIONS, SUBNETS, action_index, red_action_index
from cagepool.sim.red_observation import (
    GAME_FEATURES,
    HOST_FEATURES,
    red_observations,
    red_space,
)
from tests.sim.games import int64s, seed_range

NAMES = [f"{host} {value}" for host in HOSTS for value in HOST_FEATURES]
NAMES += [*SUBNETS, *GAME_FEATURES]
INDEX = {_core.red_action(index): index for index in range(_core.RED_ACTION_COUNT)}
assert len(NAMES) == red_space(Batch(1)).observation_size


def begun(games: int, red: str = "given", edition: str = "2.1") -> Batch:
    batch = Batch(games, BatchConfig(red=red, edition=edition, autoreset="disabled"))
    batch.reset(seed_range(0, games))
    return batch


def seen(batch: Batch) -> set[str]:
    """What red sees in the first game, by name."""
    return {NAMES[place] for place in np.flatnonzero(red_observations(batch).observations[0])}


def allowed(batch: Batch) -> set[str]:
    return {RED_ACTIONS[index] for index in np.flatnonzero(red_observations(batch).masks[0])}


def play(batch: Batch, red: str, blue: str = "Sleep") -> None:
    batch.step(int64s([action_index(blue)]), int64s([red_action_index(red)]))


def moves(batch: Batch) -> NDArray[np.int64]:
    """Red's last move in every game as a number of its actions."""
    pairs = zip(batch.moves["red_kind"].tolist(), batch.moves["red_target"].tolist(), strict=True)
    return int64s(INDEX[_core.RedKind(kind), target] for kind, target in pairs)


@pytest.mark.parametrize("edition", ["2.1", "leaderboard"])
@pytest.mark.parametrize("red", ["B_lineAgent", "RedMeanderAgent", "SleepAgent"])
def test_the_moves_of_a_scripted_red_make_the_same_game(red: str, edition: str) -> None:
    games = 20
    scripted, given = begun(games, red, edition), begun(games, edition=edition)
    rng = np.random.default_rng(0)
    for _ in range(100):
        blue = rng.integers(_core.ACTION_COUNT, size=games)
        masks = red_observations(given).masks
        scripted.step(blue)
        played = moves(scripted)
        assert masks[np.arange(games), played].all()
        given.step(blue, played)
        assert np.array_equal(given.observations, scripted.observations)
        assert np.array_equal(given.rewards, scripted.rewards)
        assert np.array_equal(given.moves, scripted.moves)
        for field in set(given.true_state.dtype.names or ()) - {"red"}:
            assert np.array_equal(given.true_state[field], scripted.true_state[field]), field
        assert np.array_equal(
            red_observations(given).observations, red_observations(scripted).observations
        )


def test_red_begins_with_its_foothold_alone() -> None:
    batch = begun(1)
    assert seen(batch) == {"User0 address", "User0 name", "User0 privileged", "User"}
    assert allowed(batch) == {
        "Sleep",
        "DiscoverRemoteSystems User",
        "DiscoverNetworkServices User0",
        "ExploitRemoteService User0",
        "PrivilegeEscalate User0",
    }


def test_red_sees_what_its_actions_tell_it() -> None:
    batch = begun(1)
    start = seen(batch)

    play(batch, "DiscoverRemoteSystems User")
    users = {f"{host} address" for host in HOSTS if host.startswith("User")}
    assert seen(batch) == start | users | {"succeeded"}

    play(batch, "DiscoverNetworkServices User1")
    ports = {"User1 scanned", "User1 SSHBruteForce", "User1 FTPDirectoryTraversal"}
    assert seen(batch) == start | users | ports | {"succeeded"}

    play(batch, "ExploitRemoteService User1")
    assert seen(batch) >= {"User1 name", "succeeded"}
    assert len(seen(batch) & {"User1 user", "User1 privileged"}) == 1

    play(batch, "PrivilegeEscalate User1")
    linked = {"User1 name", "User1 privileged", "Enterprise1 address"}
    assert seen(batch) == start | users | ports | linked | {"succeeded"}

    play(batch, "PrivilegeEscalate User1", blue="Restore User1")
    lost = {"User1 privileged", "succeeded"}
    assert seen(batch) == (start | users | ports | linked | {"failed"}) - lost

    play(batch, "Sleep")
    assert not seen(batch) & {"failed", "succeeded"}


def test_what_the_masks_leave_out_fails_and_teaches_nothing() -> None:
    batch = begun(30)
    rng = np.random.default_rng(1)
    for _ in range(60):
        before = red_observations(batch)
        batch.step(int64s([0] * 30), rng.integers(_core.RED_ACTION_COUNT, size=30))
        after = red_observations(batch)
        refused = ~before.masks[np.arange(30), moves(batch)]
        assert (batch.moves["red_success"][refused] == 0).all()
        own = slice(None, -2)  # all but the success of the last action
        assert np.array_equal(after.observations[refused, own], before.observations[refused, own])


def test_an_episode_that_has_just_begun_has_no_last_action() -> None:
    batch = Batch(1, BatchConfig(red="given", max_steps=1, autoreset="same_step"))
    batch.reset(seed_range(0, 1))
    play(batch, "DiscoverRemoteSystems User")
    assert seen(batch) == seen(begun(1))

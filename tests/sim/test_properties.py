"""Property-based tests: laws of the game under any actions."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cagepool import _core
from cagepool.scenarios import CAGE2
from cagepool.sim.names import HOSTS, action_index, host_index
from tests.sim.games import (
    ACTION_INDICES,
    ACTION_LISTS,
    ORDER,
    SEEDS,
    SETTINGS,
    int64s,
    play_actions,
    seed_range,
    start_batch,
    trace_rows,
    visible_state,
)

MANY = 600  # more than one chunk of work for each of two threads
RESTORES = range(action_index("Restore Defender"), _core.ACTION_COUNT)
LOSS_TENTHS = np.array(
    [
        0 if host == "User0" else 10 if host.startswith("Enterprise") or host == "Op_Server0" else 1
        for host in HOSTS
    ]
)


@given(seed=SEEDS, game=ACTION_LISTS, config=SETTINGS)
def test_the_same_seed_gives_the_same_game(
    seed: int, game: list[int], config: dict[str, Any]
) -> None:
    assert play_actions(start_batch(1, seed, **config), game) == play_actions(
        start_batch(1, seed, **config), game
    )


def test_another_seed_gives_another_game() -> None:
    sleep = [0] * 30
    games = {str(play_actions(start_batch(1, seed, red="meander"), sleep)) for seed in range(20)}
    assert len(games) == 20


@given(seed=SEEDS, game=ACTION_LISTS, config=SETTINGS, place=st.integers(0, 8))
def test_a_game_does_not_depend_on_its_neighbors(
    seed: int, game: list[int], config: dict[str, Any], place: int
) -> None:
    alone = play_actions(start_batch(1, seed, **config), game)
    neighbors = config | {"red": ["b_line", "meander", "mix"] * 3}
    neighbors["red"][place] = config["red"]
    among = play_actions(start_batch(9, seed - place, **neighbors), game)
    assert [step[place] for step in among] == [step[0] for step in alone]


@settings(max_examples=10)
@given(seed=SEEDS, policy=st.integers(0, 2**32), config=SETTINGS)
def test_games_do_not_depend_on_threads(seed: int, policy: int, config: dict[str, Any]) -> None:
    one = start_batch(MANY, seed, threads=1, **config)
    two = start_batch(MANY, seed, threads=2, **config)
    assert (one.core.threads, two.core.threads) == (1, 2)
    rng = np.random.default_rng(policy)
    for _ in range(8):
        step = rng.integers(0, _core.ACTION_COUNT, MANY)
        assert one.step(step) == two.step(step)
    assert visible_state(one) == visible_state(two)


@given(seed=SEEDS, game=ACTION_LISTS, config=SETTINGS, data=st.data())
def test_games_may_be_stepped_in_any_parts(
    seed: int, game: list[int], config: dict[str, Any], data: st.DataObject
) -> None:
    whole, parts = start_batch(5, seed, **config), start_batch(5, seed, **config)
    for action in game:
        ended = whole.step(int64s(range(action, action + 5)) % _core.ACTION_COUNT)
        order = data.draw(st.permutations(range(5)))
        cut = data.draw(st.integers(0, 5))
        for ids in (int64s(order[:cut]), int64s(order[cut:])):
            before = visible_state(parts)
            ended -= parts.step((action + ids) % _core.ACTION_COUNT, ids=ids)
            after = visible_state(parts)
            assert all(after[game] == before[game] for game in range(5) if game not in ids)
        assert ended == 0
        assert visible_state(parts) == visible_state(whole)


@given(seed=SEEDS, before=ACTION_LISTS, after=ACTION_LISTS, config=SETTINGS, slot=st.integers(0, 2))
def test_a_restored_game_goes_on_as_the_saved_one(
    seed: int, before: list[int], after: list[int], config: dict[str, Any], slot: int
) -> None:
    batch = start_batch(1, seed, **config)
    play_actions(batch, before)
    saved = batch.save(int64s([0]))
    expected = play_actions(batch, after)

    batch.restore(int64s([0]), saved)
    assert play_actions(batch, after) == expected

    elsewhere = start_batch(3, seed + 1, **config)
    play_actions(elsewhere, after)
    elsewhere.restore(int64s([slot]), saved)
    assert [[step[slot]] for step in play_actions(elsewhere, after)] == expected


@given(seed=SEEDS, before=ACTION_LISTS, after=ACTION_LISTS, config=SETTINGS)
def test_a_copy_has_the_same_future_and_leaves_the_original_alone(
    seed: int, before: list[int], after: list[int], config: dict[str, Any]
) -> None:
    batch = start_batch(3, seed, **config)
    play_actions(batch, before)
    others = visible_state(batch)

    batch.copy(int64s([0]), int64s([2]))

    assert batch.save(int64s([0])) == batch.save(int64s([2]))
    assert visible_state(batch)[:2] == others[:2]
    assert all(step[0] == step[2] for step in play_actions(batch, after))


@given(seed=SEEDS, before=ACTION_LISTS, after=ACTION_LISTS, config=SETTINGS, new_seed=SEEDS)
def test_a_reseeded_game_keeps_its_state_and_draws_from_its_new_seed(
    seed: int, before: list[int], after: list[int], config: dict[str, Any], new_seed: int
) -> None:
    batch = start_batch(2, seed, **config)
    play_actions(batch, before)
    batch.copy(int64s([0]), int64s([1]))
    state = visible_state(batch)

    batch.reseed(int64s([0, 1]), np.array([new_seed, new_seed], np.uint64))

    assert visible_state(batch) == state
    assert all(step[0] == step[1] for step in play_actions(batch, after))


def test_copies_with_other_seeds_diverge() -> None:
    batch = start_batch(50, red="meander")
    play_actions(batch, [0] * 5)
    batch.copy(int64s([0] * 49), int64s(range(1, 50)))
    batch.reseed(int64s(range(50)), seed_range(1, 50))
    assert len(set(play_actions(batch, [0] * 30)[-1])) > 40


@given(seed=SEEDS, game=ACTION_LISTS, config=SETTINGS)
def test_the_reward_is_the_sum_of_its_parts(
    seed: int, game: list[int], config: dict[str, Any]
) -> None:
    batch = start_batch(1, seed, **config | {"autoreset": "next_step"})
    total = 0
    for action in game:
        fresh = bool(batch.truncations[0])
        batch.step(int64s([action]))
        state = batch.true_state[0]
        held = int(LOSS_TENTHS[state["privileged"] > 0].sum())
        tenths = (
            -held
            - 100 * (1 - int(state["ot_running"][host_index("Op_Server0")]))
            - 10 * (action in RESTORES)
        )
        if fresh:  # the step in which a new episode begins plays no action
            tenths = total = 0
        total += tenths
        assert batch.rewards[0] == tenths / 10
        if batch.truncations[0]:
            assert batch.episode_returns[0] == total / 10
            assert batch.episode_lengths[0] == config["max_steps"]


@given(seed=SEEDS, game=ACTION_LISTS, config=SETTINGS)
def test_the_bits_of_an_observation_follow_the_table(
    seed: int, game: list[int], config: dict[str, Any]
) -> None:
    batch = start_batch(1, seed, **config | {"autoreset": "next_step"})
    assert not batch.observations.any()
    touched = np.zeros(13, bool)
    for action in game:
        batch.step(int64s([action]))
        bits = batch.observations[0].reshape(13, 4).astype(int)
        compromised = bits[:, 2] + 2 * bits[:, 3]
        np.testing.assert_array_equal(compromised, batch.true_state["compromised"][0])
        assert {tuple(pair) for pair in bits[:, :2].tolist()} <= {(0, 0), (1, 0), (1, 1)}
        # Only red's and green's work of this very step can be seen as activity.
        moves = batch.moves[0]
        touched[:] = False
        touched[[host for host in (moves["red_target"], moves["green_host"]) if host >= 0]] = True
        assert not bits[~touched, 0].any()
        # Whatever looks like an exploit is remembered as user access, unless files say more.
        assert set(compromised[bits[:, 1] == 1]) <= {2, 3}


@given(seed=SEEDS, game=ACTION_LISTS, config=SETTINGS)
def test_observations_are_the_same_numbers_in_either_type(
    seed: int, game: list[int], config: dict[str, Any]
) -> None:
    floats = start_batch(2, seed, **config)
    small = start_batch(2, seed, **config, observation_dtype="uint8")
    for action in game:
        for batch in (floats, small):
            batch.step(int64s([action, 144 - action]))
        np.testing.assert_array_equal(floats.observations, small.observations)
        np.testing.assert_array_equal(floats.final_observations, small.final_observations)


@given(seed=SEEDS, game=ACTION_LISTS, config=SETTINGS, policy=st.integers(0, 2**32))
@pytest.mark.parametrize("edition", ["2.1", "leaderboard"])
def test_red_forgets_nothing_but_the_ports_that_a_new_scan_replaces(
    seed: int, game: list[int], config: dict[str, Any], policy: int, edition: str
) -> None:
    reds = ["b_line", "meander", "given"]
    batch = start_batch(
        3, seed, **config | {"red": reds, "edition": edition, "max_steps": len(game)}
    )
    rng = np.random.default_rng(policy)
    before = trace_rows(batch)
    for action in game[:-1]:
        batch.step(np.full(3, action), rng.integers(0, _core.RED_ACTION_COUNT, 3))
        after = trace_rows(batch)
        for field in ("s_known_ip", "s_known_host", "s_known_net"):
            assert (after[field] >= before[field]).all()
        assert (after["s_ot_known"] >= before["s_ot_known"]).all()
        lost = before["s_red_ports"] & ~after["s_red_ports"]
        if edition == "2.1":
            scan = batch.moves["red_kind"] == _core.RedKind.SCAN
            lost[scan, batch.moves["red_target"][scan]] &= 256  # that it was scanned at all
        assert not lost.any()
        before = after


@given(
    seed=SEEDS,
    config=SETTINGS,
    game=st.lists(
        st.tuples(ACTION_INDICES, st.integers(0, _core.RED_ACTION_COUNT - 1)), max_size=60
    ),
)
def test_no_sequence_of_actions_breaks_a_game(
    seed: int, config: dict[str, Any], game: list[tuple[int, int]]
) -> None:
    batch = start_batch(1, seed, **config | {"red": "given", "max_steps": 100})
    for blue, red in game:
        batch.step(int64s([blue]), int64s([red]))
        state = batch.true_state[0]
        assert state["access"][host_index("User0")] == 2
        assert state["access"][host_index("Defender")] == 0
        log = batch.session_log(0)
        on_host = np.bincount(log["host"][log["alive"] == 1], minlength=13)
        on_host[host_index("User0")] += 1  # red's foothold
        counts = sum(state[kind].astype(int) for kind in ("privileged", "user_seen", "user_unseen"))
        np.testing.assert_array_equal(on_host, counts)


@given(seed=SEEDS, game=st.lists(ACTION_INDICES, min_size=1, max_size=60))
def test_red_enters_the_operational_subnet_only_by_way_of_the_enterprise(
    seed: int, game: list[int]
) -> None:
    batch = start_batch(2, seed, red=["b_line", "meander"])
    servers, operational, _ = map(list, CAGE2.members)
    for action in game:
        before = batch.true_state["access"].copy()
        batch.step(np.full(2, action))
        entered = (batch.true_state["access"] > before)[:, operational].any(axis=1)
        kept = batch.true_state["access"][:, servers].any(axis=1)
        escalated = batch.moves["red_kind"] == _core.RedKind.ESCALATE
        assert (kept | escalated | ~entered).all()


@given(seed=SEEDS, game=ACTION_LISTS)
def test_a_game_that_has_ended_begins_anew_as_its_mode_says(seed: int, game: list[int]) -> None:
    """Same step or next: the episodes themselves are the same."""
    same = start_batch(1, seed, red="mix", max_steps=5, autoreset="same_step")
    later = start_batch(1, seed, red="mix", max_steps=5, autoreset="next_step")
    for action in game:
        same.step(int64s([action]))
        later.step(int64s([action]))
        assert same.truncations[0] == later.truncations[0]
        if later.truncations[0]:
            np.testing.assert_array_equal(same.final_observations, later.observations)
            assert not same.observations.any()
            later.step(int64s([action]))  # is not played
            assert (later.rewards[0], later.truncations[0]) == (0, False)
        np.testing.assert_array_equal(same.observations, later.observations)
        np.testing.assert_array_equal(same.true_state, later.true_state)


@given(seed=SEEDS, game=ACTION_LISTS, config=SETTINGS)
def test_a_restored_game_shows_what_the_saved_one_showed(
    seed: int, game: list[int], config: dict[str, Any]
) -> None:
    batch = start_batch(2, seed, **config | {"order": ORDER})
    play_actions(batch, game)

    batch.copy(int64s([0]), int64s([1]))

    assert batch.save(int64s([0])) == batch.save(int64s([1]))
    for array in (
        batch.observations,
        batch.moves,
        batch.true_state,
        batch.counters,
        trace_rows(batch),
    ):
        np.testing.assert_array_equal(array[0], array[1])
    assert (batch.rewards[1], batch.truncations[1]) == (0, False)  # which belong to a step

"""Invalid snapshots raise errors and change nothing."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from cagepool.sim import Batch, BatchConfig
from tests.sim.games import (
    int64s,
    play_actions,
    play_step,
    refused_without_change,
    start_batch,
)


@pytest.fixture
def batch() -> Batch:
    batch = start_batch(3, red="meander", max_steps=20)
    play_actions(batch, [0] * 7)
    return batch


def test_a_damaged_snapshot_is_refused_wherever_the_damage_is(batch: Batch) -> None:
    good = batch.save(int64s([0]))[0]
    for place in range(len(good)):
        bad = good[:place] + bytes([good[place] ^ 0x10]) + good[place + 1 :]
        with pytest.raises(ValueError, match=r"^a snapshot must be"):
            batch.restore(int64s([1]), [bad])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda good: good[:0], "a snapshot must be whole, got one that is cut short"),
        (lambda good: good[:10], "a snapshot must be whole, got one that is cut short"),
        (lambda good: good[:-1], "a snapshot must be undamaged"),
        (lambda good: good + b"\0", "a snapshot must be undamaged"),
        (lambda good: b"PNG!" + good[4:], "must be one that `save` made, got other bytes"),
        (lambda good: good[:4] + b"\x63" + good[5:], "must be of version 1, got version 99"),
    ],
    ids=["empty", "header", "short", "long", "foreign", "version"],
)
def test_bytes_that_are_no_snapshot_are_refused_with_all_that_came_with_them(
    batch: Batch, change: Callable[[bytes], bytes], sentence: str
) -> None:
    good = batch.save(int64s([0]))[0]
    play_actions(batch, [0] * 3)
    with refused_without_change(batch, ValueError, sentence):
        batch.restore(int64s([0, 1]), [good, change(good)])


def test_a_snapshot_must_fit_the_batch() -> None:
    long = start_batch(1, max_steps=30).save(int64s([0]))
    short = start_batch(2, max_steps=20)
    with refused_without_change(
        short, ValueError, "horizon must be at most the batch's longest, 20, got 30"
    ):
        short.restore(int64s([1]), long)


def forged(snapshot: bytes, at: int, value: bytes) -> bytes:
    """A snapshot with other bytes in its body, and the checksum that goes with them."""

    def mix(x: int) -> int:
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
        return x ^ (x >> 31)

    header, body = snapshot[:16], bytearray(snapshot[16:])
    body[at : at + len(value)] = value
    checksum = len(body)
    for byte in body:
        checksum = mix(checksum ^ byte)
    return header[:8] + checksum.to_bytes(8, "little") + bytes(body)


def test_a_forged_snapshot_is_refused_or_played_without_harm(batch: Batch) -> None:
    good = batch.save(int64s([0]))[0]
    assert forged(good, 0, good[16:17]) == good
    random = np.random.default_rng(0)
    refusals = 0
    for at in range(len(good) - 16):
        for value in (0xFF, 0x0D, int(random.integers(256))):
            try:
                batch.restore(int64s([1]), [forged(good, at, bytes([value]))])
            except ValueError:
                refusals += 1
            play_actions(batch, [int(random.integers(145)) for _ in range(25)])
    assert refusals > 50


def test_a_game_cannot_be_past_its_horizon(batch: Batch) -> None:
    good = batch.save(int64s([0]))[0]
    step = (7).to_bytes(2, "little") + (20).to_bytes(2, "little")  # 7 steps played of 20
    at = good.index(step) - 16
    with refused_without_change(batch, ValueError, "a possible game"):
        batch.restore(int64s([1]), [forged(good, at, (21).to_bytes(2, "little"))])


@pytest.mark.parametrize("blob", ["text", None, bytearray(3)])
def test_a_snapshot_must_be_bytes(batch: Batch, blob: Any) -> None:
    with refused_without_change(batch, TypeError, "^a snapshot must be bytes, got "):
        batch.restore(int64s([0]), [blob])


def test_a_game_of_a_given_red_needs_a_batch_that_takes_its_actions(batch: Batch) -> None:
    given = start_batch(1, red="given", max_steps=20).save(int64s([0]))
    with refused_without_change(batch, ValueError, "needs a batch whose red is given"):
        batch.restore(int64s([0]), given)


def test_there_must_be_one_snapshot_a_game(batch: Batch) -> None:
    with refused_without_change(batch, ValueError, "one snapshot per game, got 1 for 2 games"):
        batch.restore(int64s([0, 1]), batch.save(int64s([0])))


# Places in the body of a snapshot: game_config, then the fields of a game.
STEP, SESSIONS = 24 + 28, 24 + 32
LONGEST = 65_535


def exploiting_batch(steps: int) -> Batch:
    """A game of the longest horizon in which red exploits User0 in every step but the first."""
    batch = start_batch(1, red="given", max_steps=LONGEST)
    play_step(batch, "Sleep", "DiscoverNetworkServices User0")
    for _ in range(steps - 1):
        play_step(batch, "Sleep", "ExploitRemoteService User0")
    return batch


def test_the_number_of_sessions_cannot_overflow_in_the_rest_of_the_game() -> None:
    batch = exploiting_batch(2)
    good = batch.save(int64s([0]))[0]
    session = good[-1:]  # one byte
    assert len(batch.session_log(0)) == 1
    crowded = good + session * (LONGEST - 2)  # 65,534 sessions at step 65,534: one too many
    crowded = forged(crowded, STEP, (LONGEST - 1).to_bytes(2, "little"))
    crowded = forged(crowded, SESSIONS, LONGEST.to_bytes(2, "little"))
    with refused_without_change(batch, ValueError, "impossible time or number of sessions"):
        batch.restore(int64s([0]), [crowded])


@pytest.mark.slow
def test_the_longest_game_with_the_most_sessions_can_be_saved_and_ends() -> None:
    batch = exploiting_batch(LONGEST - 1)
    other = start_batch(1, red="given", max_steps=LONGEST)
    other.restore(int64s([0]), batch.save(int64s([0])))
    play_step(other, "Sleep", "ExploitRemoteService User0")
    assert other.truncations[0]
    assert len(other.session_log(0)) == LONGEST - 1


# Fields whose every value is possible in some game: bytes of the seed, of the next episode's number
# and of the random stream's key.
FREE = {*range(12), *range(24, 32)}
# Fields with few impossible values: the share of a red, the return, red's sets of hosts and blue's
# last action.
LOOSE = {20, 21, 48, 49, *range(58, 82), 291}


def test_each_field_of_a_snapshot_is_checked(batch: Batch) -> None:
    """127 is impossible nearly everywhere; fields that depend on others are compared with them."""
    play_actions(batch, [0] * 5)
    good = batch.save(int64s([0]))[0]
    accepted = set()
    for at in range(len(good) - 16):
        with suppress(ValueError):
            batch.restore(int64s([1]), [forged(good, at, b"\x7f")])
            accepted.add(at)
    assert accepted >= FREE
    assert accepted - FREE <= LOOSE, sorted(accepted - FREE - LOOSE)


def test_snapshots_of_games_that_were_not_started_are_accepted() -> None:
    other = Batch(1, BatchConfig(max_steps=20))
    other.reseed(int64s([0]), np.array([3], np.uint64))
    batch = start_batch(1, max_steps=20)
    batch.restore(int64s([0]), other.save(int64s([0])))
    with pytest.raises(RuntimeError, match="has not been reset"):
        play_step(batch, "Sleep")

"""Harness: forged snapshots are refused, or played to the end without harm."""

from typing import Any

import numpy as np
from numpy.random import Generator

from cagepool.sim import Batch
from fuzz.games import play_steps, random_batch
from fuzz.outcomes import UnexpectedOutcomeError, refusal_allowed
from fuzz.values import INTEGERS, chance, junk, pick

HEADER = 16
MASK = 2**64 - 1


def run_case(rng: Generator) -> None:
    """Save games, restore them as they are, then forge them and restore what came out."""
    batch = random_batch(rng)
    batch.reset()
    play_steps(rng, batch, int(pick(rng, (0, 1, 2, 7, 20, 60))))
    games = np.arange(batch.games)
    saved = batch.save(games)
    batch.restore(games, saved)
    if batch.save(games) != saved:
        raise UnexpectedOutcomeError("a restored game must be the saved one")
    target = batch if chance(rng, 0.7) else random_batch(rng, red=batch.config.red)
    for _ in range(int(rng.integers(1, 12))):
        _restore_and_play(rng, target, forge_snapshot(rng, saved))


def _restore_and_play(rng: Generator, batch: Batch, blob: Any) -> None:
    game = np.array([rng.integers(batch.games)])
    try_next = False
    with refusal_allowed((ValueError, TypeError)):
        batch.restore(game, [blob])
        try_next = True
    if not try_next:
        return
    with refusal_allowed((RuntimeError,)):  # a game of a snapshot may be over or never reset
        play_steps(rng, batch, int(pick(rng, (1, 3, 40))))
    again = batch.save(game)
    batch.restore(game, again)  # what an accepted game becomes is accepted too


def forge_snapshot(rng: Generator, saved: list[bytes]) -> Any:
    """Change the body of a snapshot, usually with the checksum that belongs to it."""
    if chance(rng, 0.02):
        return junk(rng)
    good = pick(rng, saved)
    header, body = bytearray(good[:HEADER]), bytearray(good[HEADER:])
    for _ in range(int(rng.integers(1, 5))):
        _change_body(rng, body, pick(rng, saved)[HEADER:])
    if chance(rng, 0.05):
        header[int(rng.integers(HEADER))] ^= 1 << int(rng.integers(8))
    else:
        header[8:] = checksum(body).to_bytes(8, "little")
    return bytes(header + body)


def _change_body(rng: Generator, body: bytearray, other: bytes) -> None:
    if not body:
        return
    at = int(rng.integers(len(body)))
    kind = rng.integers(7)
    if kind == 0:
        body[at] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        body[at] = int(rng.integers(256))
    elif kind == 2:
        value = pick(rng, (*INTEGERS, 65_533, 65_534, 65_535)) & 0xFFFF
        body[at & ~1 : (at & ~1) + 2] = value.to_bytes(2, "little")
    elif kind == 3:
        size = int(rng.integers(1, 40))
        body[at : at + size] = other[at : at + size]
    elif kind == 4:
        del body[-int(rng.integers(1, 30)) :]
    else:
        _add_sessions(rng, body)


def _add_sessions(rng: Generator, body: bytearray) -> None:
    """Append sessions and make the fields that count steps and sessions agree with them."""
    count = 65_000 if chance(rng, 0.03) else int(pick(rng, (1, 2, 30)))
    body.extend(rng.integers(256, size=count, dtype=np.uint8).tobytes())
    for at in (52, 56):  # step, sessions
        value = int.from_bytes(body[at : at + 2], "little") + count
        body[at : at + 2] = (value & 0xFFFF).to_bytes(2, "little")


def checksum(body: bytes | bytearray) -> int:
    """Checksum of a body, as the core computes it."""
    total = len(body)
    for byte in body:
        total ^= byte
        total = (total ^ (total >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        total = (total ^ (total >> 27)) * 0x94D049BB133111EB & MASK
        total ^= total >> 31
    return total

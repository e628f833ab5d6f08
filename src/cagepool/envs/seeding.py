"""Seeds as Gymnasium's vector environments take them."""

from collections.abc import Iterable, Sequence
from operator import index
from typing import TypeAlias

import numpy as np

from cagepool.types import Seeds

Seed: TypeAlias = int | Sequence[int | None] | None

SEED_LIMIT = 2**64


def by_game(seed: Seed, games: int) -> dict[int, int]:
    """Seeds of the games that get one: `seed + i` for game i, or those of a list.

    Raises:
        TypeError: it is neither a number nor a list.
        ValueError: there is not one entry a game, or a seed is out of range.
    """
    if seed is None:
        return {}
    if isinstance(seed, str | float):
        raise TypeError(f"seed must be an integer, or one per game, got {seed!r}")
    given = range(seed, seed + games) if isinstance(seed, int | np.integer) else list(seed)
    if len(given) != games:
        raise ValueError(f"there must be one seed a game, got {len(given)} for {games} games")
    return {game: checked(one) for game, one in enumerate(given) if one is not None}


def checked(seed: int) -> int:
    """The seed, if the core can take it.

    Raises:
        ValueError: it cannot.
    """
    if not 0 <= index(seed) < SEED_LIMIT:
        raise ValueError(f"a seed must be from 0 to 2**64 - 1, got {seed}")
    return index(seed)


def fresh(source: np.random.Generator) -> int:
    """A seed for a game that was given none."""
    return int(source.integers(SEED_LIMIT, dtype=np.uint64))


def as_array(seeds: Iterable[int]) -> Seeds:
    """Seeds in the core's type.

    Raises:
        ValueError: one is out of range.
    """
    return np.array([checked(seed) for seed in seeds], np.uint64)

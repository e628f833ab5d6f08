"""Orders as points: what precedes what in them, and how far apart they are."""

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from cagepool.sim.names import HOST_TYPES
from cagepool.sim.orders import ALL_ORDERS, parse
from cagepool.types import Float64s, Int64s

PAIRS = tuple(combinations(HOST_TYPES, 2))


def precedences(order: str) -> Float64s:
    """For each of the 10 pairs of types, +1 if the first comes before the second, -1 if after."""
    types = parse(order)
    return np.array([1.0 if types.index(a) < types.index(b) else -1.0 for a, b in PAIRS])


POINTS = np.stack([precedences(order) for order in ALL_ORDERS])  # (ORDER_COUNT, 10)
# Kendall distances, (ORDER_COUNT, ORDER_COUNT): pairs of types that two orders disagree about.
DISTANCES: Int64s = (POINTS[:, None] != POINTS[None]).sum(axis=2)


def nearest(order: int, others: Sequence[int]) -> int:
    """Place, in `others`, of the order nearest to this one; the last of several."""
    apart = DISTANCES[order, list(others)]
    return int(len(apart) - 1 - apart[::-1].argmin())


def farthest(others: Sequence[int], rng: np.random.Generator) -> int:
    """An order whose nearest of `others` is as far away as can be."""
    apart = DISTANCES[:, list(others)].min(axis=1)
    return int(rng.choice(np.flatnonzero(apart == apart.max())))


def reduced(order: str, types: Iterable[str]) -> str:
    """What an order says of some types alone: all there is to tell, if red reaches no others."""
    told = set(types)
    return ">".join(name for name in parse(order) if name in told)

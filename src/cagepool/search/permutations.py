"""Workflow orders as permutations: pairwise precedences and Kendall tau distances."""

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from cagepool.sim.names import HOST_TYPES
from cagepool.sim.orders import ALL_ORDERS, parse_order
from cagepool.types import Float64s, Int64s

TYPE_PAIRS = tuple(combinations(HOST_TYPES, 2))


def precedence_vector(order: str) -> Float64s:
    """One number per pair of host types, (10,): +1 if the first type comes first, else -1."""
    types = parse_order(order)
    return np.array([1.0 if types.index(a) < types.index(b) else -1.0 for a, b in TYPE_PAIRS])


PRECEDENCES = np.stack([precedence_vector(order) for order in ALL_ORDERS])  # (ORDER_COUNT, 10)
# Kendall tau distances, (ORDER_COUNT, ORDER_COUNT): pairs of types that two orders rank differently
KENDALL_DISTANCES: Int64s = (PRECEDENCES[:, None] != PRECEDENCES[None]).sum(axis=2)


def index_of_nearest(order: int, others: Sequence[int]) -> int:
    """Index in `others` of the order with the least Kendall distance to `order`; last of ties."""
    distances = KENDALL_DISTANCES[order, list(others)]
    return int(len(distances) - 1 - distances[::-1].argmin())


def farthest_order(others: Sequence[int], rng: np.random.Generator) -> int:
    """Draw an order that maximizes the Kendall distance to the nearest of `others`."""
    distances = KENDALL_DISTANCES[:, list(others)].min(axis=1)
    return int(rng.choice(np.flatnonzero(distances == distances.max())))


def restricted_order(order: str, types: Iterable[str]) -> str:
    """The order without the host types that are not in `types`.

    Two orders with the same restriction to the types that red compromises are equivalent.
    """
    included = set(types)
    return ">".join(name for name in parse_order(order) if name in included)

"""Kendall tau distances between orders, and orders chosen by them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from cagepool.search.strategy import (
    KENDALL_DISTANCES,
    farthest_order,
    index_of_nearest,
    restricted_order,
)
from cagepool.sim.compliance import ALL_ORDERS
from cagepool.sim.names import HOST_TYPES


def test_kendall_distances_agree_with_scipy() -> None:
    for number, order in enumerate(ALL_ORDERS):
        ranks = [order.split(">").index(name) for name in HOST_TYPES]
        for other in range(0, len(ALL_ORDERS), 7):
            other_ranks = [ALL_ORDERS[other].split(">").index(name) for name in HOST_TYPES]
            # Kendall's tau is 1 - 2 d / 10.
            distance = 5 * (1 - kendalltau(ranks, other_ranks).statistic)
            assert KENDALL_DISTANCES[number, other] == round(distance)


@given(numbers=st.lists(st.integers(0, 119), min_size=1, max_size=8), seed=st.integers(0, 99))
def test_the_farthest_order_maximizes_the_distance_to_the_nearest(
    numbers: list[int], seed: int
) -> None:
    chosen = farthest_order(numbers, np.random.default_rng(seed))
    distances = KENDALL_DISTANCES[:, numbers].min(axis=1)
    assert distances[chosen] == distances.max()


def test_the_nearest_of_several_is_the_last() -> None:
    assert index_of_nearest(5, [0, 5, 90, 5]) == 3


def test_orders_that_agree_on_the_types_that_red_compromises_are_one_class() -> None:
    types = ["user", "enterprise", "op_server"]
    assert len({restricted_order(order, types) for order in ALL_ORDERS}) == 6

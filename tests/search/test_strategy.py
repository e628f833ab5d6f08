"""Proposals of orders by GP-UCB, with pending orders, and against random search."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cagepool.search.strategy import (
    KENDALL_DISTANCES,
    PRECEDENCES,
    Observation,
    add_pending,
    posterior,
    propose,
)
from cagepool.types import Float64s
from tests.search.histories import HISTORIES, ORDER_NUMBERS

SEEDS = range(20)
TOP = 5


@given(observations=HISTORIES, iteration=st.integers(2, 1000))
@settings(max_examples=20, deadline=None)
def test_no_order_is_repeated_while_an_untried_one_has_a_higher_acquisition_value(
    observations: dict[int, Observation], iteration: int
) -> None:
    proposal = propose("gp-ucb", observations, iteration, 0, 2.0)
    values = posterior(observations, 2.0).acquisition
    untried = [number for number in range(120) if number not in observations]
    assert values[proposal.order] >= values[untried].max()


@given(observations=HISTORIES, pending=st.sets(ORDER_NUMBERS, min_size=1, max_size=4))
@settings(max_examples=20, deadline=None)
def test_pending_orders_are_not_proposed_and_lower_the_deviation_around_them(
    observations: dict[int, Observation], pending: set[int]
) -> None:
    believed = add_pending(observations, [*pending], 2.0)
    assert propose("gp-ucb", believed, len(believed), 0, 2.0).order not in pending
    before, after = posterior(observations, 2.0), posterior(believed, 2.0)
    new = [*(pending - {*observations})]
    assert (after.std[new] <= before.std[new]).all()
    np.testing.assert_array_equal(after.pass_probability, before.pass_probability)


def test_the_first_two_concurrent_orders_have_the_greatest_distance() -> None:
    first = propose("gp-ucb", {}, 0, 0, 2.0).order
    second = propose("gp-ucb", add_pending({}, [first], 2.0), 1, 0, 2.0)
    assert (second.why, second.posterior) == ("farthest", None)
    assert KENDALL_DISTANCES[first, second.order] == KENDALL_DISTANCES.max()


def test_an_order_that_has_passed_is_not_proposed_while_another_has_failed() -> None:
    passed = {number: Observation(-20.0 - number, 0.5, passed=True) for number in range(120)}
    failed = passed | {7: Observation(-400.0, 0.5, passed=False)}
    assert propose("gp-ucb", failed, 120, 0, 2.0).order == 7
    assert propose("gp-ucb", passed, 120, 0, 2.0).order != 7


def synthetic_scores(seed: int) -> Float64s:
    """Scores that depend on the pairwise precedences, with a random weight per pair."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(0, 4, PRECEDENCES.shape[1])
    return np.asarray(-40 + PRECEDENCES @ weights + rng.normal(0, 2, 120))


def trainings_until_top(method: str, seed: int) -> int:
    scores = synthetic_scores(seed)
    best = {*np.argsort(-scores)[:TOP]}
    noise = np.random.default_rng([seed, 1])
    observations: dict[int, Observation] = {}
    for iteration in range(120):
        order = propose(method, observations, iteration, seed, 2.0).order
        if order in best:
            return iteration + 1
        score = float(scores[order] + noise.normal())
        observations[order] = Observation(score, 1.0, passed=True)
    raise AssertionError("120 trainings must be enough")


def test_gp_ucb_finds_a_top_order_with_fewer_trainings_than_random_search() -> None:
    by_model = [trainings_until_top("gp-ucb", seed) for seed in SEEDS]
    at_random = [trainings_until_top("random", seed) for seed in SEEDS]
    assert np.median(by_model) < np.median(at_random)
    assert np.mean(by_model) < 0.6 * np.mean(at_random)

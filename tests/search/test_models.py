"""Orders as points, the Gaussian processes over them, and what they make a search try."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau
from sklearn.gaussian_process.kernels import RBF

from cagepool.search import gp
from cagepool.search.permutations import DISTANCES, POINTS, farthest, nearest, reduced
from cagepool.search.strategy import propose
from cagepool.search.ucb import Observation, acquisition, outlook, with_pending
from cagepool.sim.names import HOST_TYPES
from cagepool.sim.orders import ALL_ORDERS

SEEDS = range(20)
TOP = 5
NUMBERS = st.integers(0, 119)
HISTORIES = st.dictionaries(
    NUMBERS,
    st.builds(Observation, st.floats(-300, -1), st.floats(0.1, 5), st.booleans()),
    min_size=2,
    max_size=12,
)


def test_distances_count_the_pairs_that_two_orders_disagree_about() -> None:
    for one, order in enumerate(ALL_ORDERS):
        ranks = [order.split(">").index(name) for name in HOST_TYPES]
        for other in range(0, len(ALL_ORDERS), 7):
            theirs = [ALL_ORDERS[other].split(">").index(name) for name in HOST_TYPES]
            # Kendall's tau is 1 - 2 d / 10.
            apart = 5 * (1 - kendalltau(ranks, theirs).statistic)
            assert DISTANCES[one, other] == round(apart)


@pytest.mark.parametrize("length", [0.7, 2.0, 5.5])
def test_the_kernel_is_that_of_mallows_on_all_pairs_of_orders(length: float) -> None:
    kernel = RBF(length)(POINTS)
    # Both take an exponential of nearly the same number: a few units in the last place.
    np.testing.assert_allclose(kernel, np.exp(-(2 / length**2) * DISTANCES), rtol=1e-12)


@given(observed=HISTORIES)
@settings(max_examples=25, deadline=None)
def test_the_posterior_is_that_of_linear_algebra(observed: dict[int, Observation]) -> None:
    tried = list(observed)
    scores = np.array([o.score for o in observed.values()])
    errors = np.array([o.standard_error for o in observed.values()])
    model, centre, scale = gp.score_model(tried, [*scores], [*errors])
    believed = gp.posterior(tried, [*scores], [*errors])
    parameters = model.kernel_.get_params()
    variance, length = parameters["k1__constant_value"], parameters["k2__length_scale"]
    kernel = variance * np.exp(-(2 / length**2) * DISTANCES)
    noise = np.maximum((errors / scale) ** 2, gp.LEAST_NOISE)
    solved = np.linalg.solve(
        kernel[np.ix_(tried, tried)] + np.diag(noise),
        np.column_stack([(scores - centre) / scale, kernel[tried]]),
    )
    mean = centre + scale * kernel[:, tried] @ solved[:, 0]
    left = np.diag(kernel - kernel[:, tried] @ solved[:, 1:])
    # Two ways to solve a system whose condition number may reach 10^6.
    np.testing.assert_allclose(believed.mean, mean, rtol=1e-6, atol=1e-6 * scale)
    np.testing.assert_allclose(believed.std, scale * np.sqrt(left), rtol=1e-4, atol=1e-3 * scale)


def test_a_score_with_a_small_error_is_believed_more_than_one_with_a_large_one() -> None:
    tried, scores = [0, 60, 119], [-10.0, -50.0, -30.0]
    sure = gp.posterior(tried, scores, [0.1] * 3)
    unsure = gp.posterior(tried, scores, [15.0] * 3)
    assert (sure.std[tried] < unsure.std[tried]).all()
    assert abs(sure.mean[60] + 50) < abs(unsure.mean[60] + 50)


def test_orders_like_those_that_failed_are_thought_likely_to_fail() -> None:
    passed = [order.startswith("user") for order in ALL_ORDERS]
    tried = list(range(0, 120, 3))
    chances = gp.pass_probability(tried, [passed[number] for number in tried])
    left = [number for number in range(120) if number not in tried]
    assert min(chances[n] for n in left if passed[n]) > max(
        chances[n] for n in left if not passed[n]
    )


def test_while_all_passed_every_order_is_as_likely_to_pass() -> None:
    assert gp.pass_probability([1, 2, 3], [True] * 3).tolist() == [4 / 5] * 120
    assert gp.pass_probability([1, 2], [False] * 2).tolist() == [1 / 4] * 120


def test_a_small_chance_to_pass_never_makes_an_order_look_better() -> None:
    mean, std = np.array([-300.0, -20.0, -20.0]), np.array([1.0, 2.0, 2.0])
    sure, unlikely = acquisition(mean, std, np.array([0.5, 0.9, 0.1]), 2.0)[1:]
    assert sure > unlikely > 0


@given(observed=HISTORIES, iteration=st.integers(2, 1000))
@settings(max_examples=20, deadline=None)
def test_no_order_is_chosen_again_while_an_untried_one_has_a_higher_acquisition_value(
    observed: dict[int, Observation], iteration: int
) -> None:
    proposal = propose("gp-ucb", observed, iteration, 0, 2.0)
    values = outlook(observed, 2.0).acquisition
    untried = [number for number in range(120) if number not in observed]
    assert values[proposal.order] >= values[untried].max()


@given(observed=HISTORIES, pending=st.sets(NUMBERS, min_size=1, max_size=4))
@settings(max_examples=20, deadline=None)
def test_orders_under_way_are_not_proposed_again_and_their_like_less_readily(
    observed: dict[int, Observation], pending: set[int]
) -> None:
    known = with_pending(observed, [*pending], 2.0)
    assert propose("gp-ucb", known, len(known), 0, 2.0).order not in pending
    before, after = outlook(observed, 2.0), outlook(known, 2.0)
    fresh = [*(pending - {*observed})]
    assert (after.std[fresh] <= before.std[fresh]).all()
    np.testing.assert_array_equal(after.pass_probability, before.pass_probability)


def test_the_first_orders_under_way_at_once_are_far_apart() -> None:
    first = propose("gp-ucb", {}, 0, 0, 2.0).order
    second = propose("gp-ucb", with_pending({}, [first], 2.0), 1, 0, 2.0)
    assert (second.why, second.believed) == ("farthest", None)
    assert DISTANCES[first, second.order] == DISTANCES.max()


def test_an_order_that_has_passed_is_settled_and_one_that_failed_is_not() -> None:
    everything = {number: Observation(-20.0 - number, 0.5, passed=True) for number in range(120)}
    failed = everything | {7: Observation(-400.0, 0.5, passed=False)}
    assert propose("gp-ucb", failed, 120, 0, 2.0).order == 7
    assert propose("gp-ucb", everything, 120, 0, 2.0).order != 7


@given(numbers=st.lists(NUMBERS, min_size=1, max_size=8), seed=st.integers(0, 99))
def test_the_second_order_is_as_far_away_as_can_be(numbers: list[int], seed: int) -> None:
    chosen = farthest(numbers, np.random.default_rng(seed))
    assert DISTANCES[chosen, numbers].min() == DISTANCES[:, numbers].min(axis=1).max()


def test_the_nearest_of_several_is_the_last() -> None:
    assert nearest(5, [0, 5, 90, 5]) == 3


def test_orders_that_agree_on_what_red_reaches_are_one_class() -> None:
    classes = {reduced(order, ["user", "enterprise", "op_server"]) for order in ALL_ORDERS}
    assert len(classes) == 6


def landscape(seed: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Scores that depend on which type precedes which, more on some pairs than on others."""
    rng = np.random.default_rng(seed)
    return (
        -40
        + POINTS @ rng.normal(0, 4, len(list(combinations(HOST_TYPES, 2))))
        + rng.normal(0, 2, 120)
    )


def trainings_until_top(method: str, seed: int) -> int:
    scores = landscape(seed)
    best = {*np.argsort(-scores)[:TOP]}
    noise = np.random.default_rng([seed, 1])
    observed: dict[int, Observation] = {}
    for iteration in range(120):
        order = propose(method, observed, iteration, seed, 2.0).order
        if order in best:
            return iteration + 1
        observed[order] = Observation(float(scores[order] + noise.normal()), 1.0, True)
    raise AssertionError("120 trainings must be enough")


def test_the_model_finds_a_good_order_with_fewer_trainings_than_chance() -> None:
    by_model = [trainings_until_top("gp-ucb", seed) for seed in SEEDS]
    by_chance = [trainings_until_top("random", seed) for seed in SEEDS]
    assert np.median(by_model) < np.median(by_chance)
    assert np.mean(by_model) < 0.6 * np.mean(by_chance)

"""Gaussian processes over orders, and the acquisition function."""

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.gaussian_process.kernels import RBF

from cagepool.search import strategy
from cagepool.search.strategy import KENDALL_DISTANCES, PRECEDENCES, Observation
from cagepool.sim.compliance import ALL_ORDERS
from tests.search.histories import HISTORIES


@pytest.mark.parametrize("length", [0.7, 2.0, 5.5])
def test_the_kernel_is_the_mallows_kernel_on_all_pairs_of_orders(length: float) -> None:
    kernel = RBF(length)(PRECEDENCES)
    # Both take an exponential of nearly the same number: a few units in the last place.
    np.testing.assert_allclose(kernel, np.exp(-(2 / length**2) * KENDALL_DISTANCES), rtol=1e-12)


@given(observations=HISTORIES)
@settings(max_examples=25, deadline=None)
def test_the_posterior_agrees_with_the_closed_form(observations: dict[int, Observation]) -> None:
    orders = list(observations)
    scores = np.array([o.score for o in observations.values()])
    errors = np.array([o.standard_error for o in observations.values()])
    model, center, scale = strategy.fit_score_model(orders, [*scores], [*errors])
    mean, std = strategy.predict_scores(orders, [*scores], [*errors])
    parameters = model.kernel_.get_params()
    variance, length = parameters["k1__constant_value"], parameters["k2__length_scale"]
    kernel = variance * np.exp(-(2 / length**2) * KENDALL_DISTANCES)
    noise = np.maximum((errors / scale) ** 2, strategy.MIN_NOISE)
    solution = np.linalg.solve(
        kernel[np.ix_(orders, orders)] + np.diag(noise),
        np.column_stack([(scores - center) / scale, kernel[orders]]),
    )
    expected_mean = center + scale * kernel[:, orders] @ solution[:, 0]
    variances = np.diag(kernel - kernel[:, orders] @ solution[:, 1:])
    # Two ways to solve a system whose condition number may reach 10^6.
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-6, atol=1e-6 * scale)
    np.testing.assert_allclose(std, scale * np.sqrt(variances), rtol=1e-4, atol=1e-3 * scale)


def test_a_smaller_standard_error_gives_an_observation_more_weight() -> None:
    orders, scores = [0, 60, 119], [-10.0, -50.0, -30.0]
    precise_mean, precise_std = strategy.predict_scores(orders, scores, [0.1] * 3)
    noisy_mean, noisy_std = strategy.predict_scores(orders, scores, [15.0] * 3)
    assert (precise_std[orders] < noisy_std[orders]).all()
    assert abs(precise_mean[60] + 50) < abs(noisy_mean[60] + 50)


def test_orders_near_failed_ones_have_a_lower_probability_of_feasibility() -> None:
    passed = [order.startswith("user") for order in ALL_ORDERS]
    observed = list(range(0, 120, 3))
    probability = strategy.pass_probability(observed, [passed[number] for number in observed])
    others = [number for number in range(120) if number not in observed]
    assert min(probability[n] for n in others if passed[n]) > max(
        probability[n] for n in others if not passed[n]
    )


def test_the_probability_of_feasibility_is_constant_until_results_differ() -> None:
    assert strategy.pass_probability([1, 2, 3], [True] * 3).tolist() == [4 / 5] * 120
    assert strategy.pass_probability([1, 2], [False] * 2).tolist() == [1 / 4] * 120


def test_a_small_probability_of_feasibility_never_raises_the_acquisition_value() -> None:
    mean, std = np.array([-300.0, -20.0, -20.0]), np.array([1.0, 2.0, 2.0])
    likely, unlikely = strategy.constrained_ucb(mean, std, np.array([0.5, 0.9, 0.1]), 2.0)[1:]
    assert likely > unlikely > 0

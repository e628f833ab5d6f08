"""Gaussian processes over orders (Mallows kernel), and the UCB acquisition function.

An order is represented by its vector of pairwise precedences. The squared Euclidean distance of two
such vectors is 4 d, where d is the Kendall tau distance. The RBF kernel with length scale l is
therefore exp(-2 d / l^2), which is the Mallows kernel.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Product
from threadpoolctl import threadpool_limits

from cagepool.search.permutations import PRECEDENCES
from cagepool.types import Float64s

LENGTH_SCALE_BOUNDS = (1.0, 20.0)  # neighbors almost independent, to all orders almost equal
VARIANCE_BOUNDS = (0.05, 20.0)  # of standardized scores
MIN_NOISE = 1e-6  # variance, of standardized scores


@dataclass(frozen=True)
class Observation:
    """Evaluation of a policy that was trained to an order."""

    score: float
    standard_error: float
    passed: bool | None  # none: pending, and the score is the posterior mean (kriging believer)
    pending: bool = False  # a training to the order is running


@dataclass(frozen=True)
class Posterior:
    """Predictions for every order, (ORDER_COUNT,) each, in the units of the scores."""

    mean: Float64s
    std: Float64s
    pass_probability: Float64s  # probability of feasibility
    acquisition: Float64s


def posterior(observations: Mapping[int, Observation], beta: float) -> Posterior:
    """Predict score, feasibility and acquisition value of every order.

    Args:
        observations: The latest observation of each order that has one; at least one.
        beta: Weight of the standard deviation in the upper confidence bound.
    """
    return _posterior(tuple(observations.items()), beta)


@lru_cache(maxsize=4)
def _posterior(observations: tuple[tuple[int, Observation], ...], beta: float) -> Posterior:
    mean, std = predict_scores(
        [order for order, _ in observations],
        [observation.score for _, observation in observations],
        [observation.standard_error for _, observation in observations],
    )
    results = [(order, seen.passed) for order, seen in observations if seen.passed is not None]
    feasibility = pass_probability(
        [order for order, _ in results], [passed for _, passed in results]
    )
    return Posterior(mean, std, feasibility, constrained_ucb(mean, std, feasibility, beta))


def constrained_ucb(
    mean: Float64s, std: Float64s, pass_probability: Float64s, beta: float
) -> Float64s:
    """Acquisition value: upper confidence bound times probability of feasibility.

    Scores are negative, and a small probability would increase a negative bound. The bound is
    therefore measured from the lowest bound of all orders.
    """
    bound = mean + beta * std
    result: Float64s = (bound - bound.min()) * pass_probability
    return result


def fit_score_model(
    orders: Sequence[int], scores: Sequence[float], errors: Sequence[float]
) -> tuple[GaussianProcessRegressor, float, float]:
    """Fit a Gaussian process to standardized scores; return it with the scores' mean and scale.

    Args:
        orders: Numbers of the observed orders.
        scores: One score per observed order.
        errors: One standard error per observed order; its square is the observation noise.
    """
    values = np.asarray(scores, np.float64)
    center = float(values.mean())
    scale = float(values.std()) or 1.0
    noise = np.maximum((np.asarray(errors) / scale) ** 2, MIN_NOISE)
    model = GaussianProcessRegressor(_mallows_kernel(), alpha=noise)
    with _single_threaded():
        model.fit(PRECEDENCES[list(orders)], (values - center) / scale)
    return model, center, scale


def predict_scores(
    orders: Sequence[int], scores: Sequence[float], errors: Sequence[float]
) -> tuple[Float64s, Float64s]:
    """Posterior mean and standard deviation of the score of every order."""
    model, center, scale = fit_score_model(orders, scores, errors)
    with _single_threaded():
        mean, std = model.predict(PRECEDENCES, return_std=True)
    return mean * scale + center, std * scale


def pass_probability(orders: Sequence[int], passed: Sequence[bool]) -> Float64s:
    """Probability of feasibility of every order, by a Gaussian process classifier.

    As long as all observed orders passed, or all failed, every order has the same probability, by
    Laplace's rule of succession.
    """
    if len({*passed}) < 2:
        return np.full(len(PRECEDENCES), (sum(passed) + 1) / (len(passed) + 2))
    model = GaussianProcessClassifier(_mallows_kernel())
    with _single_threaded():
        model.fit(PRECEDENCES[list(orders)], np.asarray(passed, np.int64))
        probabilities: Float64s = model.predict_proba(PRECEDENCES)[:, 1]
    return probabilities


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Limit BLAS to one thread, and ignore ConvergenceWarning.

    With one thread, rounding is the same on all machines, and these small systems are solved ten
    times as fast. A length scale at its bound is a valid result.
    """
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _mallows_kernel() -> Product:
    return ConstantKernel(1.0, VARIANCE_BOUNDS) * RBF(3.0, LENGTH_SCALE_BOUNDS)

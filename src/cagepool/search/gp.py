"""Gaussian processes over orders, with the Mallows kernel of the Kendall distance.

An order is the vector of its pairwise precedences. Two such vectors are 4 d apart, squared, where d
is the Kendall distance; so the RBF kernel of length l is exp(-2 d / l^2), which is Mallows'.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Product
from threadpoolctl import threadpool_limits

from cagepool.search.permutations import POINTS
from cagepool.types import Float64s

LENGTHS = (1.0, 20.0)  # from almost independent neighbours to orders that hardly differ
VARIANCES = (0.05, 20.0)  # of standardised scores
LEAST_NOISE = 1e-6


@dataclass(frozen=True)
class Posterior:
    """What is believed of all orders, in the units of the scores, (ORDER_COUNT,)."""

    mean: Float64s
    std: Float64s


def score_model(
    tried: Sequence[int], scores: Sequence[float], errors: Sequence[float]
) -> tuple[GaussianProcessRegressor, float, float]:
    """A model of standardised scores, and the centre and scale of the scores.

    Args:
        tried: Numbers of the orders that were tried.
        scores: The score of each.
        errors: The standard error of each, which is the noise of that observation.
    """
    values = np.asarray(scores, np.float64)
    centre = float(values.mean())
    scale = float(values.std()) or 1.0
    noise = np.maximum((np.asarray(errors) / scale) ** 2, LEAST_NOISE)
    model = GaussianProcessRegressor(_kernel(), alpha=noise)
    with _quiet():
        model.fit(POINTS[list(tried)], (values - centre) / scale)
    return model, centre, scale


def posterior(tried: Sequence[int], scores: Sequence[float], errors: Sequence[float]) -> Posterior:
    """Mean and deviation of the score of every order, given scores with standard errors."""
    model, centre, scale = score_model(tried, scores, errors)
    with _quiet():
        mean, std = model.predict(POINTS, return_std=True)
    return Posterior(mean * scale + centre, std * scale)


def pass_probability(tried: Sequence[int], passed: Sequence[bool]) -> Float64s:
    """Probability that each order passes; while all did the same, it is that of any order."""
    if len({*passed}) < 2:
        return np.full(len(POINTS), (sum(passed) + 1) / (len(passed) + 2))
    model = GaussianProcessClassifier(_kernel())
    with _quiet():
        model.fit(POINTS[list(tried)], np.asarray(passed, np.int64))
        chances: Float64s = model.predict_proba(POINTS)[:, 1]
    return chances


@contextmanager
def _quiet() -> Iterator[None]:
    """Compute in one thread, so that sums are rounded alike everywhere, and ten times as fast.

    A length at its bound is an answer, and no reason for a warning.
    """
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _kernel() -> Product:
    return ConstantKernel(1.0, VARIANCES) * RBF(3.0, LENGTHS)

"""Choice of the next order: GP-UCB with a kriging believer, random, or round-robin.

A proposal depends on the seed, the iteration and the observations only.

An order is represented by its vector of pairwise precedences. The squared Euclidean distance of two
such vectors is 4 d, where d is the Kendall tau distance. The RBF kernel with length scale l is
therefore exp(-2 d / l^2), which is the Mallows kernel.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Product
from threadpoolctl import threadpool_limits

from cagepool import _core
from cagepool.sim.compliance import ALL_ORDERS, parse_order
from cagepool.sim.names import HOST_TYPES
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
    """Predict score, feasibility and acquisition value of every order."""
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
    """Fit a Gaussian process to standardized scores; return it with the scores' mean and scale."""
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


MIN_OBSERVATIONS = 2  # before the model chooses
SHUFFLE_KEY = 2**32  # seeds the permutation of `random`; above all iterations


@dataclass(frozen=True)
class Proposal:
    """An order to train to, and the reason."""

    order: int
    why: str
    posterior: Posterior | None  # none: no model was fitted
    leading: tuple[int, ...] = ()  # the three candidates with the highest acquisition values


def propose(
    method: str, observations: Mapping[int, Observation], iteration: int, seed: int, beta: float
) -> Proposal:
    """Choose the order of an iteration."""
    rng = np.random.default_rng([seed, iteration])
    if method == "round-robin":
        return Proposal(iteration % _core.ORDER_COUNT, "its turn", None)
    if method == "random":
        shuffled = np.random.default_rng([seed, SHUFFLE_KEY]).permutation(_core.ORDER_COUNT)
        return Proposal(int(shuffled[iteration % _core.ORDER_COUNT]), "drawn", None)
    if not observations:
        return Proposal(int(rng.integers(_core.ORDER_COUNT)), "drawn", None)
    evaluated = sum(observation.passed is not None for observation in observations.values())
    predicted = posterior(observations, beta) if evaluated else None
    if predicted is None or evaluated < MIN_OBSERVATIONS:
        return Proposal(farthest_order(list(observations), rng), "farthest", predicted)
    best, *others = rank_candidates(predicted, observations, rng)
    return Proposal(best, "highest acquisition", predicted, (best, *others[:2]))


def add_pending(
    observations: Mapping[int, Observation], pending: Sequence[int], beta: float
) -> dict[int, Observation]:
    """Kriging believer: pending orders count as observed at their posterior mean.

    The next proposal then avoids the neighborhood of pending orders.
    """
    result = dict(observations)
    predicted = posterior(observations, beta) if observations else None
    errors = [observation.standard_error for observation in observations.values()]
    median_error = float(np.median(errors or [np.nan]))
    for order in pending:
        score = np.nan if predicted is None else float(predicted.mean[order])
        known = observations.get(order, Observation(score, median_error, None))
        result[order] = replace(known, pending=True)
    return result


def rank_candidates(
    predicted: Posterior, observations: Mapping[int, Observation], rng: np.random.Generator
) -> list[int]:
    """Orders that may be trained next, the highest acquisition value first, ties in random order.

    Pending orders are excluded. Orders that have passed are excluded unless no other is left.
    """
    pending = {order for order, observation in observations.items() if observation.pending}
    passed = {order for order, observation in observations.items() if observation.passed}
    shuffled = rng.permutation(len(predicted.acquisition))
    ranked = shuffled[np.argsort(-predicted.acquisition[shuffled], kind="stable")]
    candidates = [int(order) for order in ranked if order not in pending]
    return [order for order in candidates if order not in passed] or candidates

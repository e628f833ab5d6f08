"""Choice of the next order: GP-UCB with a kriging believer, random, or round-robin.

A proposal depends on the seed, the iteration and the observations only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cagepool import _core
from cagepool.search.gp import Observation, Posterior, posterior
from cagepool.search.permutations import farthest_order

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
    """Choose the order of an iteration.

    Args:
        method: gp-ucb, random or round-robin.
        observations: The latest observation of each order; see `add_pending` for running trainings.
        iteration: Number of earlier proposals.
        seed: Random seed of the search.
        beta: Weight of the standard deviation in the upper confidence bound.
    """
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

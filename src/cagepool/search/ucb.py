"""Which order to try next, by what is believed of all of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cagepool.search.gp import pass_probability, posterior
from cagepool.search.order import Floats


@dataclass(frozen=True)
class Observation:
    """What came of training to an order."""

    score: float
    standard_error: float
    passed: bool


@dataclass(frozen=True)
class Outlook:
    """What is believed of every order, (ORDER_COUNT,) each."""

    mean: Floats
    std: Floats
    pass_probability: Floats
    acquisition: Floats


def outlook(observed: Mapping[int, Observation], beta: float) -> Outlook:
    """The outlook after observations, the latest of each order."""
    return _outlook(tuple(observed.items()), beta)


@lru_cache(maxsize=4)
def _outlook(observed: tuple[tuple[int, Observation], ...], beta: float) -> Outlook:
    tried = [number for number, _ in observed]
    found = [observation for _, observation in observed]
    believed = posterior(tried, [o.score for o in found], [o.standard_error for o in found])
    chances = pass_probability(tried, [o.passed for o in found])
    return Outlook(
        believed.mean,
        believed.std,
        chances,
        acquisition(believed.mean, believed.std, chances, beta),
    )


def acquisition(mean: Floats, std: Floats, chances: Floats, beta: float) -> Floats:
    """Upper confidence bound times the probability of passing.

    Scores are losses, below 0: a small probability would make a bound look better. So the bound is
    counted from that of the least promising order.
    """
    bound = mean + beta * std
    result: Floats = (bound - bound.min()) * chances
    return result


def most_promising(
    believed: Outlook, observed: Mapping[int, Observation], rng: np.random.Generator
) -> list[int]:
    """Orders that have not passed by their acquisition values, the highest first, ties by chance.

    One that has passed is settled; when all have, any may be trained on.
    """
    settled = {number for number, one in observed.items() if one.passed}
    shuffled = rng.permutation(len(believed.acquisition))
    ranked = shuffled[np.argsort(-believed.acquisition[shuffled], kind="stable")]
    return [int(n) for n in ranked if n not in settled] or [int(n) for n in ranked]

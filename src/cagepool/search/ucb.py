"""Which order to try next, by what is believed of all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from cagepool.search.gp import pass_probability, posterior
from cagepool.types import Float64s


@dataclass(frozen=True)
class Observation:
    """What came of training to an order."""

    score: float
    standard_error: float
    passed: bool | None  # none: not known yet, and the score is what is believed
    under_way: bool = False  # the order is being trained to


@dataclass(frozen=True)
class Outlook:
    """What is believed of every order, (ORDER_COUNT,) each."""

    mean: Float64s
    std: Float64s
    pass_probability: Float64s
    acquisition: Float64s


def with_pending(
    observed: Mapping[int, Observation], pending: Sequence[int], beta: float
) -> dict[int, Observation]:
    """Observations, and of orders that are being trained to what is believed of them now.

    As if it had been observed: the next proposal then looks elsewhere.
    """
    result = dict(observed)
    believed = outlook(observed, beta) if observed else None
    error = float(np.median([one.standard_error for one in observed.values()] or [np.nan]))
    for number in pending:
        score = np.nan if believed is None else float(believed.mean[number])
        known = observed.get(number, Observation(score, error, None))
        result[number] = replace(known, under_way=True)
    return result


def outlook(observed: Mapping[int, Observation], beta: float) -> Outlook:
    """The outlook after observations, the latest of each order."""
    return _outlook(tuple(observed.items()), beta)


@lru_cache(maxsize=4)
def _outlook(observed: tuple[tuple[int, Observation], ...], beta: float) -> Outlook:
    tried = [number for number, _ in observed]
    found = [observation for _, observation in observed]
    believed = posterior(tried, [o.score for o in found], [o.standard_error for o in found])
    judged = [(number, one.passed) for number, one in observed if one.passed is not None]
    chances = pass_probability([number for number, _ in judged], [passed for _, passed in judged])
    return Outlook(
        believed.mean,
        believed.std,
        chances,
        acquisition(believed.mean, believed.std, chances, beta),
    )


def acquisition(mean: Float64s, std: Float64s, chances: Float64s, beta: float) -> Float64s:
    """Upper confidence bound times the probability of passing.

    Scores are losses, below 0: a small probability would make a bound look better. So the bound is
    counted from that of the least promising order.
    """
    bound = mean + beta * std
    result: Float64s = (bound - bound.min()) * chances
    return result


def most_promising(
    believed: Outlook, observed: Mapping[int, Observation], rng: np.random.Generator
) -> list[int]:
    """Orders that have not passed by their acquisition values, the highest first, ties by chance.

    One that has passed is settled; when all have, any may be trained on. None is trained to twice
    at a time.
    """
    busy = {number for number, one in observed.items() if one.under_way}
    settled = {number for number, one in observed.items() if one.passed}
    shuffled = rng.permutation(len(believed.acquisition))
    ranked = shuffled[np.argsort(-believed.acquisition[shuffled], kind="stable")]
    free = [int(n) for n in ranked if n not in busy]
    return [n for n in free if n not in settled] or free

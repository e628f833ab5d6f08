"""What to try next, by each of the methods; follows from the seed and from what was observed."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cagepool import _core
from cagepool.search.permutations import farthest
from cagepool.search.ucb import Observation, Outlook, most_promising, outlook

FIRST = 2  # orders that must have been observed before a model is asked
SHUFFLED = 2**32  # spawn key of the permutation of `random`, above all iterations


@dataclass(frozen=True)
class Proposal:
    """An order to train to, and why."""

    order: int
    why: str
    believed: Outlook | None  # none: no model was asked
    leading: tuple[int, ...] = ()  # the three best candidates, if they were compared


def propose(
    method: str, observed: Mapping[int, Observation], iteration: int, seed: int, beta: float
) -> Proposal:
    """The order of an iteration, which counts from 0; see `with_pending` for those under way."""
    rng = np.random.default_rng([seed, iteration])
    if method == "round-robin":
        return Proposal(iteration % _core.ORDER_COUNT, "its turn", None)
    if method == "random":
        shuffled = np.random.default_rng([seed, SHUFFLED]).permutation(_core.ORDER_COUNT)
        return Proposal(int(shuffled[iteration % _core.ORDER_COUNT]), "drawn", None)
    if not observed:
        return Proposal(int(rng.integers(_core.ORDER_COUNT)), "drawn", None)
    known = sum(one.passed is not None for one in observed.values())
    believed = outlook(observed, beta) if known else None
    if believed is None or known < FIRST:
        return Proposal(farthest(list(observed), rng), "farthest", believed)
    order, *others = most_promising(believed, observed, rng)
    return Proposal(order, "highest acquisition", believed, (order, *others[:2]))

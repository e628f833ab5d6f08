"""What the rates of backends at many sizes say: how they scale, where they cross, which to take."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TypeAlias

import numpy as np

Rates: TypeAlias = Mapping[int, float]
"""Steps a second by number of environments."""


@dataclass(frozen=True)
class Crossing:
    """About where one backend overtakes another."""

    overtaken: str
    faster: str
    """From here on, for a while at least."""
    environments: float


@dataclass(frozen=True)
class Advice:
    """Which backend is fastest over a range of sizes, both ends included."""

    first: int
    last: int
    backend: str


def efficiency(rates: Rates) -> dict[int, float]:
    """The rate at each size, of what that many times the rate of a single one would be."""
    return {size: rate / (size * rates[1]) for size, rate in rates.items()}


def best(rates: Mapping[str, Rates], size: int) -> str:
    """The fastest backend at this size, of those that were measured at it."""
    there = {name: of[size] for name, of in rates.items() if size in of}
    return max(there, key=there.__getitem__)


def crossings(rates: Mapping[str, Rates]) -> Iterator[Crossing]:
    """All places where the faster of two backends changes, between sizes by interpolation."""
    for one, other in combinations(rates, 2):
        sizes = sorted(rates[one].keys() & rates[other].keys())
        leads = {size: math.log(rates[one][size] / rates[other][size]) for size in sizes}
        for below, above in pairwise(sizes):
            if leads[below] * leads[above] < 0:
                part = leads[below] / (leads[below] - leads[above])
                where = below * (above / below) ** part
                pair = (one, other) if leads[below] > 0 else (other, one)
                yield Crossing(*pair, environments=where)


def advice(rates: Mapping[str, Rates]) -> list[Advice]:
    """The fastest backend at every size, sizes with the same one put together."""
    ranges: list[Advice] = []
    for size in sorted({size for of in rates.values() for size in of}):
        fastest = best(rates, size)
        if ranges and ranges[-1].backend == fastest:
            ranges[-1] = Advice(ranges[-1].first, size, fastest)
        else:
            ranges.append(Advice(size, size, fastest))
    return ranges


def fitted(rates: Rates, processes: int) -> tuple[float, float]:
    """Seconds of a step of all whatever their number, and for each in the fullest process.

    The line that is nearest to what was measured, relative to it.
    """
    took_s = np.array([size / rate for size, rate in rates.items()])
    fullest = np.array([math.ceil(size / min(size, processes)) for size in rates])
    terms = np.stack([np.ones_like(took_s), fullest]) / took_s
    (fixed_s, each_s), *_ = np.linalg.lstsq(terms.T, np.ones_like(took_s), rcond=None)
    return float(fixed_s), float(each_s)

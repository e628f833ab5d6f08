"""What has changed between two runs of a bench, beyond their noise.

Two runs are never made at the same time, and the machine is not the same twice: so costs are taken
in units of the reference that took its turns beside them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Any, Literal, TypeAlias

import numpy as np

from cagepool.bench.schema import settings, turns
from cagepool.types import Float64s

SMALLEST = 0.05  # change worth telling: as much may come from where things lie in memory
RISK = 0.01  # at most, of taking noise of one contender for a change
RISK_OF_ALL = 0.05  # of doing so with any contender of a result, where there are turns enough
BUSY = 0.1  # share of the machine taken by others from which on it may explain a change
Verdict: TypeAlias = Literal["slower", "faster", "no change"]


@dataclass(frozen=True, kw_only=True)
class Change:
    """What became of one contender."""

    group: str
    name: str
    settings: dict[str, Any]
    before_ns: float
    after_ns: float
    change: float
    """Of the cost, in units of the reference: 0.1 is a tenth slower."""
    noise: float
    """Changes up to this cannot be told from noise."""

    @property
    def verdict(self) -> Verdict:
        """In words."""
        if abs(math.log1p(self.change)) <= math.log1p(self.noise):
            return "no change"
        return "slower" if self.change > 0 else "faster"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two runs beside each other."""

    changes: list[Change]
    gone: list[str]
    """Contenders of the old run that are not in the new one."""
    added: list[str]
    machine: dict[str, tuple[object, object]]
    """Where the machines differ, or what was installed on them."""


def compared(before: Mapping[str, Any], after: Mapping[str, Any]) -> Comparison:
    """Compare two results, each as `read_result` gives it.

    Raises:
        ValueError: they are of different benches, or lack single turns.
    """
    if before["bench"] != after["bench"]:
        kinds = f"{before['bench']} and {after['bench']}"
        raise ValueError(f"both results must be of the same bench, got {kinds}")
    old, new = dict(_rows(before)), dict(_rows(after))
    both = [key for key in old if key in new]
    rule = _Rule(min(RISK, RISK_OF_ALL / max(1, len(both))), max(_blur(before), _blur(after)))
    return Comparison(
        changes=[_change(key[0], old[key], new[key], rule) for key in both],
        gone=[_label(key) for key in old if key not in new],
        added=[_label(key) for key in new if key not in old],
        machine=_differences(before["machine"], after["machine"]),
    )


def shift(
    before: Sequence[float], after: Sequence[float], risk: float = RISK
) -> tuple[float, float]:
    """By how much the logarithms differ (Hodges and Lehmann), and how uncertain that is.

    The uncertainty is half of the interval that Mann and Whitney's test gives, infinite where there
    are too few values for any certainty.
    """
    pairs: Float64s = np.subtract.outer(np.log(after), np.log(before))
    differences = np.sort(pairs.ravel())
    estimate = float(np.median(differences))
    cut = _outside(len(before), len(after), risk)
    if cut == 0:
        return estimate, math.inf
    low, high = float(differences[cut - 1]), float(differences[-cut])
    return estimate, max(high - estimate, estimate - low)


@cache
def _outside(first: int, second: int, risk: float) -> int:
    """How many of all differences, counted from either end, the interval may leave outside.

    Where there are too few turns for so small a risk, all differences are in the interval.
    """
    ways = _ways(first, second)
    below = np.cumsum(ways) / ways.sum()
    enough = bool(below[0] <= RISK / 2)
    return max(int(np.searchsorted(below, risk / 2, side="right")), int(enough))


def _ways(first: int, second: int) -> Float64s:
    """In how many ways of mixing two samples the test's U is 0, 1, 2 and so on.

    These are the coefficients of the Gaussian binomial (first + second over first).
    """
    ways = np.zeros(first * second + 1)
    ways[0] = 1
    for number in range(1, first + 1):
        for power in range(len(ways) - 1, second + number - 1, -1):  # times 1 - q^(second+number)
            ways[power] -= ways[power - second - number]
        for power in range(number, len(ways)):  # divided by 1 - q^number
            ways[power] += ways[power - number]
    return ways


@dataclass(frozen=True)
class _Rule:
    risk: float
    least: float  # noise, of any contender


def _blur(result: Mapping[str, Any]) -> float:
    """The change that others can explain who took so much of the machine."""
    share = min(result.get("busy_elsewhere") or 0.0, 0.99)
    return float(share / (1 - share)) if share > BUSY else SMALLEST


def _change(group: str, before: Mapping[str, Any], after: Mapping[str, Any], rule: _Rule) -> Change:
    old, new = _costs(group, before), _costs(group, after)
    paired = bool(len(old.relative) and len(new.relative))
    pair = (old.relative, new.relative) if paired else (old.raw, new.raw)
    found, unsure = shift(*pair, rule.risk)
    return Change(
        group=group,
        name=before["name"],
        settings=settings(before),
        before_ns=median(old.raw),
        after_ns=median(new.raw),
        change=math.expm1(found),
        noise=max(rule.least, math.expm1(min(unsure, 10.0))),
    )


@dataclass(frozen=True)
class _Costs:
    raw: list[float]  # nanoseconds of a step, in each turn
    relative: list[float]  # in units of the reference; empty: it took no part


def _costs(group: str, row: Mapping[str, Any]) -> _Costs:
    found = turns(row, f"{row['name']} of {group}")
    steps = found["calls"] * found["steps_in_a_call"]
    raw = [1e9 * seconds / steps for seconds in found["seconds"]]
    reference = found["reference"]
    if len(reference) != len(raw):
        return _Costs(raw, [])
    return _Costs(raw, [cost / unit for cost, unit in zip(raw, reference, strict=True)])


_Key: TypeAlias = tuple[str, str, tuple[tuple[str, str], ...]]


def _rows(result: Mapping[str, Any]) -> Iterator[tuple[_Key, Mapping[str, Any]]]:
    for group, rows in result["groups"].items():
        for row in rows:
            what = tuple((name, str(value)) for name, value in sorted(settings(row).items()))
            yield (group, row["name"], what), row


def _label(key: _Key) -> str:
    group, name, what = key
    return ", ".join((f"{group}: {name}", *(f"{setting} {value}" for setting, value in what)))


def _differences(
    before: Mapping[str, object], after: Mapping[str, object]
) -> dict[str, tuple[object, object]]:
    """Of what may change speed; the commit is what one compares, and load is told elsewhere."""
    names = [name for name in {**before, **after} if name not in ("commit", "load", "cagepool")]
    pairs = {name: (before.get(name), after.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

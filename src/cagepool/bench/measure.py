"""Time contenders against each other: they take turns in one run, so that drift hits all alike."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from statistics import quantiles
from typing import Protocol, TypeAlias

import numpy as np

REFERENCE_S = 0.2  # the longest turn of the reference
Settings: TypeAlias = dict[str, str | float | bool]


class Clock(Protocol):
    """Runs a contender and tells how long it took."""

    def __call__(self, calls: int, /) -> float:
        """Seconds that so many calls took."""


@dataclass(frozen=True, kw_only=True)
class Contender:
    """Something to be timed."""

    name: str
    settings: Settings
    """What was measured; goes beside the figures."""
    steps: int
    """Game steps in one call."""
    clock: Clock


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What came out for one contender."""

    name: str
    settings: Settings
    steps: int
    calls: int
    """Calls in one repetition."""
    seconds: list[float] = field(repr=False)
    """Of each repetition."""
    reference: list[float] = field(default_factory=list, repr=False)
    """Seconds of a call of the reference in each repetition; none: it took no part."""
    warm_up_s: float = 0.0

    @property
    def nanoseconds(self) -> list[float]:
        """Of one game step, in each repetition."""
        return [1e9 * seconds / (self.calls * self.steps) for seconds in self.seconds]

    @property
    def quartiles(self) -> tuple[float, float, float]:
        """Of the nanoseconds of one game step; the second is the median."""
        low, middle, high = quantiles(self.nanoseconds, n=4)
        return low, middle, high

    @property
    def steps_per_second(self) -> float:
        """Median rate."""
        return 1e9 / self.quartiles[1]

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        low, middle, high = (round(value, 3) for value in self.quartiles)
        cost = {"median": middle, "quartiles": [low, high], "repetitions": len(self.seconds)}
        return {
            "name": self.name,
            **self.settings,
            "nanoseconds_per_step": cost,
            "steps_per_second": round(self.steps_per_second),
            "turns": self._turns(),
        }

    def _turns(self) -> dict[str, object]:
        """Every repetition, for whoever compares two runs."""
        return {
            "calls": self.calls,
            "steps_in_a_call": self.steps,
            "warm_up_s": _digits(self.warm_up_s),
            "seconds": [_digits(value) for value in self.seconds],
            "reference": [_digits(value) for value in self.reference],
        }


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How long to measure."""

    repetitions: int = 15
    """Turns of each contender."""
    seconds: float = 0.2
    """Length of one turn, about."""

    def __post_init__(self) -> None:
        """Check that there will be something to tell."""
        if self.repetitions < 2:  # quartiles need as many
            raise ValueError(f"repetitions must be at least 2, got {self.repetitions}")
        if self.seconds <= 0:
            raise ValueError(f"seconds must be more than 0, got {self.seconds}")


def timed(call: Callable[[], object]) -> Clock:
    """A clock for a function of this process."""

    def clock(calls: int, /) -> float:
        turns = range(calls)
        start = time.perf_counter()
        for _ in turns:
            call()
        return time.perf_counter() - start

    return clock


def compare(
    contenders: Iterable[Contender], pace: Pace, progress: Callable[[], object]
) -> list[Measurement]:
    """Time contenders in turns, after a warm-up; `progress` is called after each turn.

    The reference takes its turn in every round: it tells how fast the machine itself was then.
    """
    lanes = [_Lane(contender, pace.seconds) for contender in contenders]
    reference = _Lane(reference_contender(), min(pace.seconds, REFERENCE_S))
    for _ in range(pace.repetitions):
        reference.take_turn()
        for lane in lanes:
            lane.take_turn()
            progress()
    speeds = [seconds / reference.calls for seconds in reference.seconds]
    return [lane.measurement(speeds) for lane in lanes]


def reference_contender() -> Contender:
    """Fixed work, half in Python and half in numpy, that no change of ours can touch."""
    row = np.random.default_rng(0).random(2000)

    def work() -> None:
        total = 0
        for number in range(2000):
            total += number * number
        for _ in range(4):
            np.sort(row)

    return Contender(name="reference", settings={}, steps=1, clock=timed(work))


class _Lane:
    """A contender and its turns so far."""

    def __init__(self, contender: Contender, seconds: float) -> None:
        """Find out how many calls take about so long; that is the warm-up."""
        self.contender = contender
        self.seconds: list[float] = []
        self.warm_up_s = 0.0
        calls = 1
        while (elapsed := self._timed(calls)) < seconds / 2:
            calls = max(2 * calls, round(calls * seconds / max(elapsed, 1e-9) / 2))
        self.calls = max(1, round(calls * seconds / elapsed))

    def _timed(self, calls: int) -> float:
        elapsed = self.contender.clock(calls)
        self.warm_up_s += elapsed
        return elapsed

    def take_turn(self) -> None:
        self.seconds.append(self.contender.clock(self.calls))

    def measurement(self, reference: list[float]) -> Measurement:
        return Measurement(
            name=self.contender.name,
            settings=self.contender.settings,
            steps=self.contender.steps,
            calls=self.calls,
            seconds=self.seconds,
            reference=reference,
            warm_up_s=self.warm_up_s,
        )


def _digits(value: float) -> float:
    """Six digits: more than any clock is worth."""
    return float(f"{value:.6g}")

"""Time contenders against each other: they take turns in one run, so that drift hits all alike."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Protocol

Settings = dict[str, str | int | bool]


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

    @property
    def nanoseconds(self) -> list[float]:
        """Of one game step, in each repetition."""
        return [1e9 * seconds / (self.calls * self.steps) for seconds in self.seconds]

    @property
    def steps_per_second(self) -> float:
        """Median rate."""
        return 1e9 / median(self.nanoseconds)

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        low, middle, high = quantiles(self.nanoseconds, n=4)
        spread = {"median": round(middle, 3), "quartiles": [round(low, 3), round(high, 3)]}
        return {
            "name": self.name,
            **self.settings,
            "nanoseconds_per_step": {**spread, "repetitions": len(self.seconds)},
            "steps_per_second": round(self.steps_per_second),
        }


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How long to measure."""

    repetitions: int = 15
    """Turns of each contender."""
    seconds: float = 0.2
    """Length of one turn, about."""


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
    """Time contenders in turns, after a warm-up; `progress` is called after each turn."""
    lanes: list[tuple[Contender, int, list[float]]] = [
        (contender, _calls_in(contender.clock, pace.seconds), []) for contender in contenders
    ]
    for _ in range(pace.repetitions):
        for contender, calls, seconds in lanes:
            seconds.append(contender.clock(calls))
            progress()
    return [
        Measurement(
            name=contender.name,
            settings=contender.settings,
            steps=contender.steps,
            calls=calls,
            seconds=seconds,
        )
        for contender, calls, seconds in lanes
    ]


def _calls_in(clock: Clock, seconds: float) -> int:
    """How many calls take about so long; finding out is the warm-up."""
    calls = 1
    while (elapsed := clock(calls)) < seconds / 2:
        calls = max(2 * calls, round(calls * seconds / max(elapsed, 1e-9) / 2))
    return max(1, round(calls * seconds / elapsed))

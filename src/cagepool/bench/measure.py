"""Interleaved timing: one round measures every contender, so that drift affects all alike."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from multiprocessing import get_context
from typing import Any, Protocol, TypeAlias

import numpy as np

from cagepool.bench.schema import Groups, Measurement, Repetitions, Settings, significant

MAX_REFERENCE_SECONDS = 0.2  # per repetition
Progress: TypeAlias = Callable[[str, int, int], object]
"""Callback with the present group, its finished repetitions and their total."""


class Timer(Protocol):
    """Runs a contender and measures the time."""

    def __call__(self, calls: int, /) -> float:
        """Return the seconds of `calls` calls."""


@dataclass(frozen=True, kw_only=True)
class Contender:
    """Something to measure."""

    name: str
    settings: Settings
    steps_per_call: int
    """Environment steps per call."""
    timer: Timer


MakeContender: TypeAlias = Callable[[ExitStack], Contender]
"""Creates a contender; the stack closes it after its group."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Duration of a measurement."""

    repetitions: int = 15
    """Per contender."""
    seconds: float = 0.2
    """Approximate duration of one repetition."""

    def __post_init__(self) -> None:
        """Check the values."""
        if self.repetitions < 2:  # quartiles need two
            raise ValueError(f"repetitions must be at least 2, got {self.repetitions}")
        if self.seconds <= 0:
            raise ValueError(f"seconds must be more than 0, got {self.seconds}")


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Output of one bench: a `BenchResult` without its machine."""

    groups: Groups = field(default_factory=dict)
    ratios: dict[str, float]
    facts: dict[str, Any] = field(default_factory=dict)


def time_calls(call: Callable[[], object]) -> Timer:
    """Return a timer of a function of this process."""

    def timer(calls: int, /) -> float:
        repeat = range(calls)
        start = time.perf_counter()
        for _ in repeat:
            call()
        return time.perf_counter() - start

    return timer


def measure_groups(
    groups: Iterable[tuple[str, Sequence[MakeContender]]],
    pace: Pace,
    progress: Progress,
    preload: Sequence[str] = (),
) -> Groups:
    """Measure group after group; contenders exist only while their group is measured.

    Args:
        groups: Names, and functions that create the contenders.
        pace: Duration per contender.
        progress: Called after each repetition.
        preload: Modules that forked processes of other libraries find imported.
    """
    _preload(preload)
    results: Groups = {}
    for name, makers in groups:
        with ExitStack() as stack:
            contenders = [make(stack) for make in makers]
            total = pace.repetitions * len(contenders)
            finished = (progress(name, number, total) for number in count(1))
            progress(name, 0, total)
            results[name] = measure_interleaved(contenders, pace, finished.__next__)
    return results


def measure_interleaved(
    contenders: Iterable[Contender], pace: Pace, on_repetition: Callable[[], object]
) -> list[Measurement]:
    """Measure contenders in turn, after a warm-up.

    The reference workload runs in every round: `compare` divides by its time to remove changes of
    the machine's speed.
    """
    runs = [_Run(contender, pace.seconds) for contender in contenders]
    reference = _Run(reference_workload(), min(pace.seconds, MAX_REFERENCE_SECONDS))
    for _ in range(pace.repetitions):
        reference.repeat()
        for run in runs:
            run.repeat()
            on_repetition()
    reference_seconds = [significant(seconds / reference.calls) for seconds in reference.seconds]
    return [run.measurement(reference_seconds) for run in runs]


def reference_workload() -> Contender:
    """Fixed work that does not use this package: half Python, half NumPy."""
    values = np.random.default_rng(0).random(2000)

    def work() -> None:
        total = 0
        for number in range(2000):
            total += number * number
        for _ in range(4):
            np.sort(values)

    return Contender(name="reference", settings={}, steps_per_call=1, timer=time_calls(work))


class _Run:
    """Repetitions of one contender."""

    def __init__(self, contender: Contender, seconds: float) -> None:
        """Warm up: find the number of calls that take about `seconds`."""
        self.contender = contender
        self.seconds: list[float] = []
        self.warm_up_seconds = 0.0
        calls = 1
        while (elapsed := self._warm_up(calls)) < seconds / 2:
            calls = max(2 * calls, round(calls * seconds / max(elapsed, 1e-9) / 2))
        self.calls = max(1, round(calls * seconds / elapsed))

    def _warm_up(self, calls: int) -> float:
        elapsed = self.contender.timer(calls)
        self.warm_up_seconds += elapsed
        return elapsed

    def repeat(self) -> None:
        self.seconds.append(self.contender.timer(self.calls))

    def measurement(self, reference_seconds: list[float]) -> Measurement:
        repetitions = Repetitions(
            calls=self.calls,
            steps_per_call=self.contender.steps_per_call,
            warm_up_seconds=significant(self.warm_up_seconds),
            seconds=[significant(seconds) for seconds in self.seconds],
            reference_seconds=reference_seconds,
        )
        return Measurement.of(self.contender.name, self.contender.settings, repetitions)


def _preload(modules: Sequence[str]) -> None:
    """Import modules once in the fork server, which saves most of the start-up time."""
    wanted = ("cagepool.bench.contenders", "stable_baselines3.common.vec_env", *modules)
    installed = [name for name in wanted if find_spec(name.partition(".")[0])]
    get_context("forkserver").set_forkserver_preload(installed)

"""Bench results with invented figures, and contenders that start no processes."""

from contextlib import ExitStack
from typing import Any

import numpy as np

from cagepool.bench.measure import Contender
from cagepool.bench.schema import BenchResult, Measurement, Repetitions

MACHINE: dict[str, str | int | float | None] = {
    "processor": "invented",
    "cores": 2,
    "python": "3.11.7",
    "numpy": "2.0.0",
    "commit": "abc",
    "load": 0.1,
}


def row(
    nanoseconds: Any, name: str = "Batch.step", reference: Any = (), **settings: Any
) -> Measurement:
    """A contender of one step per call, with these nanoseconds in its repetitions."""
    repetitions = Repetitions(
        calls=1000,
        steps_per_call=1,
        seconds=[float(cost) * 1000 / 1e9 for cost in nanoseconds],
        reference_seconds=list(map(float, np.asarray(reference))),
    )
    return Measurement.of(name, settings, repetitions)


def result(*rows: Measurement, bench: str = "engine", **machine: Any) -> BenchResult:
    """A result with one group."""
    return BenchResult(
        bench=bench,
        machine={**MACHINE, **machine},
        load_after=0.2,
        busy_elsewhere=0.01,
        stolen=0.0,
        groups={"batch": list(rows)},
        ratios={"a / b": 1.5},
    )


class FakeContender:
    """Stands in for `Workers` and `Gymnasium`: each environment step takes a fixed time."""

    def __init__(self, *, env_fns: Any, name: str = "", backend: str = "", **_: Any) -> None:
        self.count = len(env_fns)
        self.name = name or f"Gymnasium, {backend}"

    def __call__(self, _: ExitStack) -> Contender:
        step_seconds = 1e-3 * len(self.name)  # contenders differ
        return Contender(
            name=self.name,
            settings={"environments": self.count},
            steps_per_call=self.count,
            timer=lambda calls: calls * self.count * step_seconds,
        )

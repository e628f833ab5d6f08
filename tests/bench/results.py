"""Results of benches as they would stand in files, made up."""

from typing import Any

import numpy as np

MACHINE = {
    "processor": "one of ours",
    "cores": 2,
    "python": "3.11.7",
    "numpy": "2.0.0",
    "commit": "abc",
    "load": 0.1,
}


def row(
    nanoseconds: Any, name: str = "Batch.step", reference: Any = None, **settings: Any
) -> dict[str, Any]:
    """A contender of one step a call, with so many nanoseconds in each turn."""
    costs = np.asarray(nanoseconds, float)
    low, middle, high = np.percentile(costs, [25, 50, 75])
    return {
        "name": name,
        **settings,
        "nanoseconds_per_step": {
            "median": middle,
            "quartiles": [low, high],
            "repetitions": len(costs),
        },
        "steps_per_second": 1e9 / middle,
        "turns": {
            "calls": 1000,
            "steps_in_a_call": 1,
            "seconds": [cost * 1000 / 1e9 for cost in costs],
            "reference": [] if reference is None else list(map(float, reference)),
        },
    }


def result(*rows: dict[str, Any], bench: str = "engine", **machine: Any) -> dict[str, Any]:
    """A result with one group."""
    return {
        "bench": bench,
        "machine": {**MACHINE, **machine},
        "load_after": 0.2,
        "busy_elsewhere": 0.01,
        "stolen": 0.0,
        "groups": {"batch": list(rows)},
        "ratios": {"a against b": 1.5},
    }

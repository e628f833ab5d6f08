"""Runs the cases of one harness; the process may die of one, so its number is stored before it."""

import time
from importlib import import_module
from pathlib import Path

import numpy as np


def run_cases(harness: str, seed: int, seconds: float, progress: Path) -> None:
    """Run cases 0, 1, 2 and so on for that long; `progress` always has the current one."""
    run_case = import_module(f"fuzz.{harness}").run_case
    current = np.memmap(progress, np.int64, "r+", shape=1)
    deadline = time.monotonic() + seconds
    case = 0
    while time.monotonic() < deadline:
        current[0] = case
        run_case(case_rng(seed, case))
        case += 1
    current[0] = case


def run_one(harness: str, seed: int, case: int) -> None:
    """Run a single case again."""
    import_module(f"fuzz.{harness}").run_case(case_rng(seed, case))


def case_rng(seed: int, case: int) -> np.random.Generator:
    """Random numbers of a case; they depend on nothing else."""
    return np.random.default_rng([seed, case])

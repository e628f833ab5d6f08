"""Short checks that an installation plays correctly on this machine."""

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np

from cagepool.envs import make_vec
from cagepool.parity import replay_mismatches
from cagepool.sim.names import ACTIONS
from cagepool.types import Float64s

GAMES = 4096  # of the native batch: enough for two threads
STEPS = 100
WORKERS = 2
_GOLDEN = Path(__file__).parent / "sim" / "golden"


class CheckFailedError(RuntimeError):
    """The result of a check is wrong; the message says which."""


class CheckResult(NamedTuple):
    """Outcome of one check."""

    name: str
    passed: bool
    detail: str  # what was played, or why the check failed
    seconds: float


def run_checks() -> list[CheckResult]:
    """Run all checks; a check that fails or raises does not stop the others."""
    return [_run(name, check) for name, check in CHECKS.items()]


def _run(name: str, check: Callable[[], str]) -> CheckResult:
    start = perf_counter()
    try:
        passed, detail = True, check()
    except CheckFailedError as failure:
        passed, detail = False, str(failure)
    except Exception as error:  # noqa: BLE001 - a diagnosis reports every error
        passed, detail = False, f"{type(error).__name__}: {error}"
    return CheckResult(name, passed, detail, perf_counter() - start)


def check_golden_games() -> str:
    """Replay games that were recorded from CybORG, and compare every field of every step."""
    games = steps = 0
    for path in sorted(_GOLDEN.glob("*.npz")):
        with np.load(path) as file:
            trace = dict(file)
        mismatches = replay_mismatches(trace)
        if mismatches:
            first = f"the first: {mismatches[0]}"
            raise CheckFailedError(f"{len(mismatches)} values of {path.stem} differ, {first}")
        games += len(trace["blue_action"])
        steps += trace["blue_action"].size
    if not games:
        raise CheckFailedError("the recorded games are missing from the installation")
    return f"{games} games recorded from CybORG, {steps} steps, equal in every field"


def check_native_batch() -> str:
    """Play a batch with one and with two threads."""
    (first, seconds), (second, _) = _play_batch(threads=1), _play_batch(threads=2)
    if not np.array_equal(first, second):
        games = np.flatnonzero((first != second).any(0))
        raise CheckFailedError(f"{len(games)} of {GAMES} games differ between 1 and 2 threads")
    rate = f"{GAMES * STEPS / seconds:,.0f} steps/s with 1 thread"
    return f"{GAMES} games of {STEPS} steps, equal with 1 and 2 threads, {rate}"


def check_workers() -> str:
    """Play games in worker processes and compare them with the same games in this process."""
    if sys.platform != "linux":
        return "not supported on this system: worker processes need Linux"
    actions = np.random.default_rng(0).integers(0, len(ACTIONS), (STEPS, WORKERS))
    with (
        make_vec(WORKERS, backend="workers", workers=WORKERS) as workers,
        make_vec(WORKERS, backend="native") as native,
    ):
        workers.reset(seed=1)
        native.reset(seed=1)
        for step, action in enumerate(actions):
            ours, theirs = native.step(action), workers.step(action)
            if not all(np.array_equal(a, b) for a, b in zip(ours[:4], theirs[:4], strict=True)):
                raise CheckFailedError(f"games in workers differ from native ones in step {step}")
    return f"{WORKERS} worker processes, {STEPS} steps, equal to the native games"


CHECKS = {
    "golden games": check_golden_games,
    "native batch": check_native_batch,
    "worker processes": check_workers,
}


def _play_batch(threads: int) -> tuple[Float64s, float]:
    """Rewards of random actions, (step, game), and the seconds that the steps took."""
    rng = np.random.default_rng(1)
    rewards = np.zeros((STEPS, GAMES))
    seconds = 0.0
    with make_vec(GAMES, red="mix", threads=threads, copy=False) as envs:
        envs.reset(seed=1)
        for row in rewards:
            actions = rng.integers(0, len(ACTIONS), GAMES)
            start = perf_counter()
            row[:] = envs.step(actions)[1]
            seconds += perf_counter() - start
    return rewards, seconds

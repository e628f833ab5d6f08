"""Environment of known cost."""

import time
from typing import Any

import gymnasium as gym
import numpy as np

from cagepool.bench.contenders import DummyEnv

SLEEP_SECONDS = 0.002


class SleepyEnv(DummyEnv):
    """Sleeps in every step, and adds up the time."""

    slept_seconds = 0.0

    def step(self, action: np.int64) -> Any:
        start = time.perf_counter()
        time.sleep(SLEEP_SECONDS)
        SleepyEnv.slept_seconds += time.perf_counter() - start
        return super().step(action)


def sleepy_env() -> gym.Env[Any, Any]:
    return SleepyEnv()

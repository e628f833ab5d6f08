"""Environment of known cost."""

import time
from typing import Any

import gymnasium as gym
import numpy as np

from cagepool.bench.measure import DummyEnv

SLEEP_SECONDS = 0.002


class SleepyEnv(DummyEnv):
    """Sleeps in every step."""

    def step(self, action: np.int64) -> Any:
        time.sleep(SLEEP_SECONDS)
        return super().step(action)


def sleepy_env() -> gym.Env[Any, Any]:
    return SleepyEnv()

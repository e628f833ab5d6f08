"""A clock that only goes when it is told to, and environments of known cost."""

import time
from typing import Any

import gymnasium as gym
import numpy as np

from cagepool.bench.dummy_envs import Probe

SLEEP_S = 0.002


class FakeClock:
    """Reads the time that has passed; every reading may take some."""

    def __init__(self, tick: float = 0.0) -> None:
        self.time = 100.0
        self.tick = tick

    def __call__(self) -> float:
        self.time += self.tick
        return self.time

    def passes(self, seconds: float) -> None:
        self.time += seconds


class Sleepy(Probe):
    """Sleeps in every step, and knows how long."""

    slept_s = 0.0

    def step(self, action: np.int64) -> Any:
        start = time.perf_counter()
        time.sleep(SLEEP_S)
        Sleepy.slept_s += time.perf_counter() - start
        return super().step(action)


def sleepy() -> gym.Env[Any, Any]:
    return Sleepy()

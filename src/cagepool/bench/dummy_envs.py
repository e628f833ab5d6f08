"""Environments of known cost, with which backends are compared."""

import time
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, VectorEnv

from cagepool.envs.env_fns import EnvFn
from cagepool.types import Float32s, Infos


class Probe(gym.Env[Float32s, np.int64]):
    """Costs next to nothing; the size of its spaces is that of CAGE-2."""

    observation_space = gym.spaces.Box(0, 1, (52,), np.float32)
    action_space = gym.spaces.Discrete(145)

    def __init__(self) -> None:
        """Show zeros for ever."""
        self._seen = np.zeros(52, np.float32)

    def reset(
        self,
        *,
        seed: int | None = None,
        options: Infos | None = None,  # noqa: ARG002 - Gymnasium's signature
    ) -> tuple[Float32s, Infos]:
        """Start an episode that never ends."""
        super().reset(seed=seed)
        return self._seen, {}

    def step(self, action: np.int64) -> tuple[Float32s, float, bool, bool, Infos]:  # noqa: ARG002
        """Do nothing."""
        return self._seen, 0.0, False, False, {}


class Waiting(Probe):
    """Waits in every step, as for a simulator elsewhere: a heavy tail, at most 4 times the mean."""

    def __init__(self, mean_s: float) -> None:
        """Wait so long on average."""
        super().__init__()
        self._mean_s = mean_s

    def step(self, action: np.int64) -> tuple[Float32s, float, bool, bool, Infos]:
        """Wait."""
        # The mean of this distribution, clipped, is 1.
        factor = min(4.0, self.np_random.lognormal(-0.292, 0.8))
        time.sleep(factor * self._mean_s)
        return super().step(action)


class Working(Probe):
    """Computes in every step."""

    def __init__(self, seconds: float) -> None:
        """Compute so long; time in which another has the core does not count."""
        super().__init__()
        self._seconds = seconds

    def step(self, action: np.int64) -> tuple[Float32s, float, bool, bool, Infos]:
        """Compute."""
        until_s = time.thread_time() + self._seconds
        while time.thread_time() < until_s:
            pass
        return super().step(action)


def pipes_only(makers: list[EnvFn]) -> VectorEnv[Any, Any, Any]:
    """Gymnasium's AsyncVectorEnv without shared memory."""
    return AsyncVectorEnv(makers, shared_memory=False, context="forkserver")

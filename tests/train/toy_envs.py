"""Toy environments whose observations encode what happened."""

from typing import Any, SupportsFloat, SupportsIndex, TypeAlias

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

Observation: TypeAlias = NDArray[np.float32]
LENGTHS = (3, 1, 4, 2, 7)
ACTIONS = 3


class Counting(gym.Env[Observation, SupportsIndex]):
    """Observes its number, episode, step and last action; the reward depends on all and the action.

    Episodes have different lengths; every other one is truncated instead of terminated.
    """

    observation_space = gym.spaces.Box(-1, 1000, (4,), np.float32)
    action_space = gym.spaces.Discrete(ACTIONS)

    def __init__(self) -> None:
        self.number = -1
        self.episode = -1

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        if seed is not None:
            self.number = seed % 100
        self.episode += 1
        self.step_number = 0
        self.last = -1
        return self._observation(), {}

    def step(
        self, action: SupportsIndex
    ) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        reward = reward_of(self._observation(), int(action))
        self.step_number += 1
        self.last = int(action)
        done = self.step_number == LENGTHS[(self.number + self.episode) % len(LENGTHS)]
        is_truncated = self.episode % 2 == 1
        return self._observation(), reward, done and not is_truncated, done and is_truncated, {}

    def _observation(self) -> Observation:
        return np.array([self.number, self.episode, self.step_number, self.last], np.float32)


def reward_of(observation: Observation, action: int) -> float:
    """Reward of an action after this observation; every case has another one."""
    number, episode, step, last = map(float, observation)
    return number + 0.25 * episode + 16 * step + 128 * last + 512 * action


class Recall(gym.Env[Observation, SupportsIndex]):
    """Shows a number in the first step and rewards choosing it in the second.

    The second observation shows the number again only if the first action was 2.
    """

    observation_space = gym.spaces.Box(0, 1, (4,), np.float32)
    action_space = gym.spaces.Discrete(3)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.number = int(self.np_random.integers(3))
        self.is_second = False
        return np.eye(4, dtype=np.float32)[self.number], {}

    def step(
        self, action: SupportsIndex
    ) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        if self.is_second:
            return np.zeros(4, np.float32), float(int(action) == self.number), True, False, {}
        self.is_second = True
        observation = np.zeros(4, np.float32)
        observation[3] = 1
        if int(action) == 2:
            observation[self.number] = 1
        return observation, 0.0, False, False, {}


class Remember(gym.Env[Observation, SupportsIndex]):
    """Shows a number in the first step only, and rewards choosing it in the last.

    Episodes have 3 or 4 steps, so that they end at different steps of a rollout.
    """

    observation_space = gym.spaces.Box(0, 1, (4,), np.float32)
    action_space = gym.spaces.Discrete(3)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.number = int(self.np_random.integers(3))
        self.steps_left = int(self.np_random.integers(3, 5))
        return np.eye(4, dtype=np.float32)[self.number], {}

    def step(
        self, action: SupportsIndex
    ) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        self.steps_left -= 1
        observation = np.zeros(4, np.float32)
        observation[3] = self.steps_left == 1
        is_over = self.steps_left == 0
        reward = float(is_over and int(action) == self.number)
        return observation, reward, is_over, False, {}


class Shifted(Counting):
    """Actions that do not start at 0."""

    action_space = gym.spaces.Discrete(ACTIONS, start=1)


class Steered(Counting):
    """Continuous actions."""

    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)  # type: ignore[assignment]

"""Small environments that tell from an observation what must have happened."""

from typing import Any, SupportsFloat, SupportsIndex, TypeAlias

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

Seen: TypeAlias = NDArray[np.float32]
LENGTHS = (3, 1, 4, 2, 7)
CHOICES = 3


class Counting(gym.Env[Seen, SupportsIndex]):
    """Shows number, episode, step and last action, and pays what these were and what was chosen.

    Episodes have different lengths; every other one is cut off instead of coming to its end.
    """

    observation_space = gym.spaces.Box(-1, 1000, (4,), np.float32)
    action_space = gym.spaces.Discrete(CHOICES)

    def __init__(self) -> None:
        self.number = -1
        self.episode = -1

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Seen, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        if seed is not None:
            self.number = seed % 100
        self.episode += 1
        self.step_number = 0
        self.last = -1
        return self._seen(), {}

    def step(self, action: SupportsIndex) -> tuple[Seen, SupportsFloat, bool, bool, dict[str, Any]]:
        reward = paid(self._seen(), int(action))
        self.step_number += 1
        self.last = int(action)
        over = self.step_number == LENGTHS[(self.number + self.episode) % len(LENGTHS)]
        is_cut_off = self.episode % 2 == 1
        return self._seen(), reward, over and not is_cut_off, over and is_cut_off, {}

    def _seen(self) -> Seen:
        return np.array([self.number, self.episode, self.step_number, self.last], np.float32)


def paid(seen: Seen, action: int) -> float:
    """The reward of an action after this observation, different for each."""
    number, episode, step, last = map(float, seen)
    return number + 0.25 * episode + 16 * step + 128 * last + 512 * action


class Recall(gym.Env[Seen, SupportsIndex]):
    """Shows a number for one step; pays for choosing it in the second, where only 0s are seen.

    What was shown is kept in the observation as long as the first choice was to keep it.
    """

    observation_space = gym.spaces.Box(0, 1, (4,), np.float32)
    action_space = gym.spaces.Discrete(3)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Seen, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.wanted = int(self.np_random.integers(3))
        self.is_second = False
        return np.eye(4, dtype=np.float32)[self.wanted], {}

    def step(self, action: SupportsIndex) -> tuple[Seen, SupportsFloat, bool, bool, dict[str, Any]]:
        if self.is_second:
            return np.zeros(4, np.float32), float(int(action) == self.wanted), True, False, {}
        self.is_second = True
        seen = np.zeros(4, np.float32)
        seen[3] = 1
        if int(action) == 2:  # to keep it
            seen[self.wanted] = 1
        return seen, 0.0, False, False, {}


class Shifted(Counting):
    """Has actions that do not begin at 0."""

    action_space = gym.spaces.Discrete(CHOICES, start=1)


class Steered(Counting):
    """Has actions that are no choice."""

    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)  # type: ignore[assignment]

"""Generalised advantage estimates."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cagepool.sim.features import Floats

Bools: TypeAlias = NDArray[np.bool_]


def advantages(rewards: Floats, values: Floats, ends: Bools, gamma: float, decay: float) -> Floats:
    """Advantages, (steps, games).

    Nothing flows from one episode into the one before: what came after a time limit must already
    be part of the reward.

    Args:
        rewards: (steps, games).
        values: (steps + 1, games), of the state before each step and after the last.
        ends: (steps, games), whether the episode ended with this step.
        gamma: Discount of a step.
        decay: The lambda of the estimates.
    """
    going_on = (~ends).astype(np.float32)
    errors = rewards + gamma * values[1:] * going_on - values[:-1]
    carry = np.float32(gamma * decay) * going_on
    result = np.empty_like(rewards)
    carried = np.zeros_like(rewards[0])
    for step in reversed(range(len(rewards))):
        carried = errors[step] + carry[step] * carried
        result[step] = carried
    return result

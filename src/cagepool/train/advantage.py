"""Generalised advantage estimates."""

import numpy as np

from cagepool.types import Bools, Float32s


def advantages(
    rewards: Float32s, values: Float32s, ends: Bools, gamma: float, decay: float
) -> Float32s:
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

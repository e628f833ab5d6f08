"""Gymnasium spaces of one game."""

from typing import cast

import numpy as np
from gymnasium.spaces import Box, Discrete, Space
from numpy.typing import DTypeLike

from cagepool import _core
from cagepool.types import Observations


def observation_space(dtype: DTypeLike) -> Space[Observations]:
    """The 52 bits of an observation."""
    space = Box(0, 1, (_core.OBSERVATION_SIZE,), np.dtype(dtype).type)
    return cast("Space[Observations]", space)


def action_space() -> Discrete:
    """Blue's 145 actions."""
    return Discrete(_core.ACTION_COUNT)

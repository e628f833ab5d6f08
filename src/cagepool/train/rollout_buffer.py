"""What was collected between two updates, in arrays that are made once."""

from dataclasses import dataclass

import numpy as np

from cagepool.types import Bools, Bytes, Float32s, Int64s


@dataclass(frozen=True)
class Shape:
    """Sizes of a rollout."""

    steps: int
    games: int
    inputs: int
    choices: int
    masked: bool


class Rollout:
    """Row t of everything belongs to step t: what was seen *before* the choice, then what came."""

    def __init__(self, shape: Shape) -> None:
        """Make the arrays."""
        cells = (shape.steps, shape.games)
        self.shape = shape
        self.inputs: Float32s = np.zeros((shape.steps + 1, shape.games, shape.inputs), np.float32)
        self.masks: Bytes | None = (
            np.ones((shape.steps + 1, shape.games, shape.choices), np.uint8)
            if shape.masked
            else None
        )
        self.choices: Int64s = np.zeros(cells, np.int64)
        self.log_probabilities: Float32s = np.zeros(cells, np.float32)
        self.rewards: Float32s = np.zeros(cells, np.float32)
        self.ends: Bools = np.zeros(cells, np.bool_)  # the episode ended with this step
        self.counted: Bools = np.ones(cells, np.bool_)  # the step belongs to the run's episodes
        self.finals: list[Final] = []
        self.steps = 0  # those that were played

    def begin(self, other: "Rollout | None" = None) -> None:
        """Start over from the last row, of another rollout if one is given."""
        source = other or self
        self.inputs[0] = source.inputs[source.steps]
        if self.masks is not None and source.masks is not None:
            self.masks[0] = source.masks[source.steps]
        self.finals.clear()
        self.steps = 0


@dataclass(frozen=True)
class Final:
    """Last states of episodes that were cut off by their time limit in one step."""

    step: int
    games: Int64s
    inputs: Float32s

"""The learner protocol: what the PPO algorithm needs of networks and optimizer.

A learner holds actor, critic and optimizer state; all arrays at its boundary are NumPy arrays. An
`Actor` (train/rollout.py) is the copy of the policy that collects rollouts. train/make_learner.py
chooses the implementations by the configuration.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from cagepool.train.rollout import Rollout
from cagepool.types import Arrays, Bools, Bytes, Float32s, Int64s


@dataclass(frozen=True)
class Transitions:
    """Transitions of a rollout, one row per environment step."""

    features: Float32s  # (rows, features)
    action_masks: Bytes | None  # (rows, actions)
    actions: Int64s  # (rows,), as all that follow
    log_probs: Float32s
    advantages: Float32s
    values: Float32s  # by the critic before the update
    returns: Float32s
    critic_features: Float32s | None = None  # (rows, critic features); None: `features`
    sequences: "Sequences | None" = None  # of a recurrent policy


@dataclass(frozen=True)
class Sequences:
    """How transitions follow each other: row number = step * environments + environment.

    With sequences, the transitions are all cells of a rollout, and minibatches take the counted
    rows of whole environments.
    """

    dones: Bools  # (steps, environments), whether the episode ended with this step
    counted: Bools  # (steps, environments), whether the step belongs to the run's episodes
    initial_state: Float32s  # (environments, state size), before the first step

    def rows_of(self, envs: Int64s) -> Int64s:
        """Numbers of the counted rows of these environments, step by step."""
        is_row = np.zeros_like(self.counted)
        is_row[:, envs] = self.counted[:, envs]
        return np.flatnonzero(is_row)


@dataclass(frozen=True)
class LossCoefficients:
    """Coefficients of the PPO loss in one update."""

    clip_range: float
    clip_range_vf: float  # 0: no value clipping
    ent_coef: float


class LossTerms(NamedTuple):
    """Means over a minibatch, or the contribution of some rows to them."""

    policy: float
    value: float
    entropy: float
    kl: float
    clip_fraction: float


class RolloutValues(NamedTuple):
    """The critic's values of a rollout."""

    states: Float32s  # (steps + 1, environments)
    truncated: list[Float32s]  # of the last states, in the order of `Rollout.truncations`


class Learner(Protocol):
    """Actor and critic with their optimizer state."""

    def weights(self) -> Arrays:
        """Weights by name. They may share memory with the learner: copy what must not change."""

    def values(self, rollout: Rollout, /) -> RolloutValues:
        """Values of all states of a rollout and of the last states of truncated episodes."""

    def step(
        self,
        transitions: Transitions,
        rows: Int64s,
        coefficients: LossCoefficients,
        learning_rate: float,
        /,
    ) -> tuple[LossTerms, float]:
        """Take one optimizer step on the minibatch of these rows.

        Returns:
            Loss terms and the norm of the actor's gradient before clipping.
        """

    def gradient(
        self, transitions: Transitions, rows: Int64s, coefficients: LossCoefficients, /
    ) -> tuple[LossTerms, Arrays]:
        """Loss terms of a minibatch, and the gradient of its loss before clipping, by name."""

    def arrays(self) -> Arrays:
        """Weights and optimizer state by their names in a checkpoint."""

    def load_arrays(self, arrays: Arrays, /) -> None:
        """Load weights and optimizer state from the arrays of a checkpoint.

        Raises:
            ValueError: an array is missing or has another shape.
        """

    def close(self) -> None:
        """Stop the threads."""


def mean_terms(terms: list[LossTerms]) -> LossTerms:
    """Mean over minibatches."""
    return LossTerms(*np.mean(terms, axis=0).tolist())

"""The learner protocol: what the PPO algorithm needs of networks and optimizer; initial weights.

A learner holds actor, critic and optimizer state; all arrays at its boundary are NumPy arrays. An
`Actor` (train/rollout.py) is the copy of the policy that collects rollouts.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from cagepool import _core
from cagepool.sim.encoder import parse_biases
from cagepool.sim.masks import action_set
from cagepool.train.config import PpoConfig, TrainConfig
from cagepool.train.rollout import Rollout, RolloutShape
from cagepool.types import Arrays, Bools, Bytes, Float32s, Int64s

HIDDEN_GAIN = 2**0.5
ACTOR_GAIN = 0.01  # of the last layer: an almost uniform policy at the start
CRITIC_GAIN = 1.0
KIND_BIASES = "kind_biases"  # of an entity network


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
        """Load weights and optimizer state from the arrays of a checkpoint."""

    def close(self) -> None:
        """Stop the threads."""


def mean_terms(terms: list[LossTerms]) -> LossTerms:
    """Mean over minibatches."""
    return LossTerms(*np.mean(terms, axis=0).tolist())


def actor_widths(config: PpoConfig, shape: RolloutShape) -> list[int]:
    """Widths of the actor: inputs, hidden layers, outputs."""
    return [shape.features, *config.hidden, shape.actions]


def critic_widths(config: PpoConfig, shape: RolloutShape) -> list[int]:
    """Widths of the critic: inputs, hidden layers, one output."""
    return [shape.critic_features or shape.features, *(config.critic_hidden or config.hidden), 1]


def initial_weights(actor: Sequence[int], critic: Sequence[int], seed: int) -> Arrays:
    """Orthogonal weights and zero biases of two MLPs, by name.

    Args:
        actor: Widths: inputs, hidden layers, outputs.
        critic: Likewise.
        seed: The weights are drawn from it.
    """
    rng = np.random.default_rng(seed)
    return {
        **_mlp_weights("actor", actor, ACTOR_GAIN, rng),
        **_mlp_weights("critic", critic, CRITIC_GAIN, rng),
    }


def _mlp_weights(
    network: str, widths: Sequence[int], last_gain: float, rng: np.random.Generator
) -> Arrays:
    arrays: Arrays = {}
    for layer, (inputs, outputs) in enumerate(pairwise(widths)):
        gain = last_gain if layer == len(widths) - 2 else HIDDEN_GAIN
        # Numbers as in PyTorch's `Sequential`, where activations count too.
        arrays[f"{network}.{2 * layer}.weight"] = orthogonal(outputs, inputs, gain, rng)
        arrays[f"{network}.{2 * layer}.bias"] = np.zeros(outputs, np.float32)
    return arrays


def orthogonal(rows: int, columns: int, gain: float, rng: np.random.Generator) -> Float32s:
    """Matrix whose rows, or columns if they are fewer, are orthogonal with norm `gain`."""
    normal = rng.standard_normal((max(rows, columns), min(rows, columns)))
    basis, triangle = np.linalg.qr(normal)
    basis *= np.sign(np.diag(triangle))  # makes the distribution uniform
    matrix = basis if rows >= columns else basis.T
    return np.ascontiguousarray(gain * matrix, np.float32)


def start_biases(config: TrainConfig, shape: RolloutShape) -> Float32s | None:
    """Initial bias of each choice of the policy; None: all 0."""
    if config.ppo.start_bias is None:
        return None
    by_kind = parse_biases(config.ppo.start_bias)
    if shape.hosts is None:
        indices = action_set(config.features.actions)
        kinds = [_core.blue_action(int(action))[0].name.capitalize() for action in indices]
    else:
        plain, on_hosts = shape.hosts.plain_kinds, shape.hosts.host_kinds
        slots = (shape.actions - len(plain)) // len(on_hosts)
        kinds = [*plain, *np.repeat(on_hosts, slots).tolist()]
    names = ("Decoy" if kind.startswith("Decoy") else kind for kind in kinds)
    return np.array([by_kind.get(name, 0.0) for name in names], np.float32)


def set_start_biases(learner: Learner, biases: Float32s, shape: RolloutShape) -> None:
    """Set the biases of the actor's last layer, one per action, or of the kinds of actions."""
    arrays = {name: array.copy() for name, array in learner.arrays().items()}
    if KIND_BIASES in arrays and shape.hosts is not None:
        plain, kinds = len(shape.hosts.plain_kinds), len(shape.hosts.host_kinds)
        by_kind = biases[plain:].reshape(kinds, -1)[:, 0]
        arrays[KIND_BIASES][:] = np.concatenate([biases[:plain], by_kind])
        learner.load_arrays(arrays)
        return
    layers = [name for name in arrays if re.fullmatch(r"actor(\.[0-9]+)?\.bias", name)]
    if not layers:
        raise ValueError("ppo.start_bias needs a network whose last layer is named actor")
    last = max(layers, key=lambda name: [int(number) for number in re.findall("[0-9]+", name)])
    arrays[last][:] = biases
    learner.load_arrays(arrays)

"""Native learner: MLPs whose passes, gradient steps and sampling are in C++, on the CPU.

It needs no PyTorch. Its numbers depend neither on the number of threads nor on the processor.
"""

from typing import TypedDict

import numpy as np

from cagepool import _core
from cagepool._machine import usable_cores
from cagepool._stages import stage
from cagepool.policy.native import ACTIVATIONS, Parameters, layer_names
from cagepool.train.config import PpoConfig
from cagepool.train.learner import (
    LossCoefficients,
    LossTerms,
    RolloutValues,
    Transitions,
    actor_widths,
    critic_widths,
    initial_weights,
)
from cagepool.train.rollout import Actor, CorePolicy, Rollout, RolloutShape
from cagepool.types import Arrays, Bytes, Float32s, Int64s

_MOMENTS = ("exp_avg", "exp_avg_sq")


class NativeLearner:
    """Actor and critic, two MLPs, with their Adam state."""

    def __init__(self, config: PpoConfig, shape: RolloutShape, seed: int) -> None:
        """Draw the weights from the seed; close the learner to stop its threads."""
        actor = actor_widths(config, shape)
        critic = critic_widths(config, shape)
        self._max_grad_norm = config.max_grad_norm
        self._core: _core.MlpLearner | None = _core.MlpLearner(
            actor=actor,
            critic=critic,
            activation=ACTIVATIONS[config.activation],
            threads=_threads(config),
        )
        names = [*layer_names("actor", actor), *layer_names("critic", critic)]
        self._parameters = Parameters(names, self._core.layers, self._core.size)
        self._moments = {
            moment: Parameters(names, self._core.layers, self._core.size) for moment in _MOMENTS
        }
        self._steps = 0
        self._parameters.load(initial_weights(actor, critic, seed))

    def weights(self) -> Arrays:
        """Copy of the weights, by name."""
        return self._parameters.arrays()

    def values(self, rollout: Rollout) -> RolloutValues:
        """Values of all states of a rollout and of the last states of truncated episodes."""
        features = rollout.features if rollout.critic_features is None else rollout.critic_features
        return RolloutValues(
            self._values(features[: rollout.steps + 1]),
            [
                self._values(end.features if end.critic_features is None else end.critic_features)
                for end in rollout.truncations
            ],
        )

    def step(
        self,
        transitions: Transitions,
        rows: Int64s,
        coefficients: LossCoefficients,
        learning_rate: float,
    ) -> tuple[LossTerms, float]:
        """Take one Adam step on the minibatch of these rows.

        Returns:
            Loss terms and the norm of the actor's gradient before clipping.
        """
        self._steps += 1
        terms, norm = self._open_core.step(
            parameters=self._parameters.flat,
            exp_avg=self._moments["exp_avg"].flat,
            exp_avg_sq=self._moments["exp_avg_sq"].flat,
            **_minibatch(transitions, rows, coefficients),
            max_grad_norm=self._max_grad_norm,
            learning_rate=learning_rate,
            steps=self._steps,
        )
        return LossTerms(*terms), norm

    def gradient(
        self, transitions: Transitions, rows: Int64s, coefficients: LossCoefficients
    ) -> tuple[LossTerms, Arrays]:
        """Loss terms of a minibatch, and the gradient of its loss before clipping, by name."""
        gradient = self._parameters.zeros_like()
        terms = self._open_core.write_gradient(
            parameters=self._parameters.flat,
            gradient=gradient.flat,
            **_minibatch(transitions, rows, coefficients),
        )
        return LossTerms(*terms), gradient.arrays()

    def arrays(self) -> Arrays:
        """Weights and Adam state by their names in a checkpoint."""
        result = self._parameters.arrays()
        for moment, parameters in self._moments.items():
            result |= {
                f"adam.{moment}.{name}": array for name, array in parameters.arrays().items()
            }
        result["adam.step"] = np.array([float(self._steps)])
        return result

    def load_arrays(self, arrays: Arrays) -> None:
        """Load weights and Adam state from the arrays of a checkpoint."""
        self._parameters.load(arrays)
        for moment, parameters in self._moments.items():
            parameters.load(arrays, f"adam.{moment}.")
        self._steps = int(arrays["adam.step"][0])

    def close(self) -> None:
        """Stop the threads."""
        self._core = None

    @property
    def _open_core(self) -> _core.MlpLearner:
        if self._core is None:
            raise RuntimeError("the learner must be open, it was closed")
        return self._core

    def _values(self, features: Float32s) -> Float32s:
        values = np.empty(features.shape[:-1], np.float32)
        rows = features.reshape(-1, features.shape[-1])
        self._open_core.write_values(self._parameters.flat, rows, values.reshape(-1))
        return values


class NativeActor(Actor):
    """Actor of rollouts: forward pass and sampling in one call."""

    def __init__(self, config: PpoConfig, shape: RolloutShape) -> None:
        """Create networks for rollouts of this shape."""
        widths = actor_widths(config, shape)
        core = _core.MlpActor(
            widths=widths,
            activation=ACTIVATIONS[config.activation],
            threads=1 if config.overlap else _threads(config),  # the update has them
        )
        self._core: _core.MlpActor | None = core
        self._parameters = Parameters(layer_names("actor", widths), core.layers, core.size)
        self._actions = shape.actions

    @property
    def core_policy(self) -> CorePolicy:
        """Network and parameters."""
        return CorePolicy(self._open_core, self._parameters.flat)

    def weights(self) -> Arrays:
        """Copy of the weights, by name."""
        return self._parameters.arrays()

    def load_weights(self, weights: Arrays) -> None:
        """Copy the weights of a learner."""
        self._parameters.load(weights)

    def logits(self, features: Float32s, _masks: Bytes | None = None) -> Float32s:
        """Logits of the actions, (rows, actions)."""
        logits = np.empty((len(features), self._actions), np.float32)
        self._open_core.write_logits(self._parameters.flat, features, logits)
        return logits

    def sample(
        self,
        features: Float32s,
        masks: Bytes | None,
        uniforms: Float32s,
        actions: Int64s,
        log_probs: Float32s,
    ) -> None:
        """Sample one action per environment."""
        with stage("policy_forward"):
            self._open_core.sample(
                self._parameters.flat, features, masks, uniforms, actions, log_probs
            )

    def close(self) -> None:
        """Stop the threads."""
        self._core = None

    @property
    def _open_core(self) -> _core.MlpActor:
        if self._core is None:
            raise RuntimeError("the actor must be open, it was closed")
        return self._core


def _threads(config: PpoConfig) -> int:
    """Threads that have a core; fewer give the same numbers."""
    return min(config.threads, usable_cores())


class _Minibatch(TypedDict):
    rows: Int64s
    features: Float32s
    critic_features: Float32s
    masks: Bytes | None
    chosen: Int64s
    log_probabilities: Float32s
    advantages: Float32s
    old_values: Float32s
    returns: Float32s
    clip_range: float
    clip_range_vf: float
    ent_coef: float


def _minibatch(
    transitions: Transitions, rows: Int64s, coefficients: LossCoefficients
) -> _Minibatch:
    features = transitions.features
    critic_features = transitions.critic_features
    return {
        "rows": rows,
        "features": features,
        "critic_features": features if critic_features is None else critic_features,
        "masks": transitions.action_masks,
        "chosen": transitions.actions,
        "log_probabilities": transitions.log_probs,
        "advantages": transitions.advantages,
        "old_values": transitions.values,
        "returns": transitions.returns,
        "clip_range": coefficients.clip_range,
        "clip_range_vf": coefficients.clip_range_vf,
        "ent_coef": coefficients.ent_coef,
    }

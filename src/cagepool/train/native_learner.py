"""Native learner: MLPs whose passes, gradient steps and sampling are in C++, on the CPU.

It needs no PyTorch. Its numbers depend neither on the number of threads nor on the processor.
"""

from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from cagepool import _core
from cagepool._stages import stage
from cagepool.train.config import PpoConfig
from cagepool.train.initialization import actor_widths, critic_widths, initial_weights
from cagepool.train.learner import LossCoefficients, LossTerms, RolloutValues, Transitions
from cagepool.train.rollout import CorePolicy, Rollout, RolloutShape
from cagepool.types import Arrays, Bytes, Float32s, Int64s

_ACTIVATIONS = {"tanh": _core.Activation.TANH, "relu": _core.Activation.RELU}
_MOMENTS = ("exp_avg", "exp_avg_sq")
_CACHE_LINE_FLOATS = 16


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
            activation=_ACTIVATIONS[config.activation],
            threads=config.threads,
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
        """Load weights and Adam state from the arrays of a checkpoint.

        Raises:
            ValueError: an array is missing, has another shape, or has numbers that are not finite.
        """
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


class NativeActor:
    """Actor of rollouts: forward pass and sampling in one call."""

    @property
    def state(self) -> Float32s | None:
        """None: MLPs have no recurrent state."""
        return None

    def __init__(self, config: PpoConfig, shape: RolloutShape) -> None:
        """Create networks for rollouts of this shape."""
        widths = actor_widths(config, shape)
        core = _core.MlpActor(
            widths=widths,
            activation=_ACTIVATIONS[config.activation],
            threads=1 if config.overlap else config.threads,  # an update at the same time has them
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

    def load_state(self, state: Float32s) -> None:
        """Do nothing: MLPs have no recurrent state."""

    def reset(self, env_ids: Int64s) -> None:
        """Do nothing: MLPs have no recurrent state."""

    def close(self) -> None:
        """Stop the threads."""
        self._core = None

    @property
    def _open_core(self) -> _core.MlpActor:
        if self._core is None:
            raise RuntimeError("the actor must be open, it was closed")
        return self._core


class Parameters:
    """Flat parameters in the layout of the core, with views of each array by name."""

    def __init__(
        self, names: Sequence[str], layers: Sequence[tuple[int, int, int, int]], size: int
    ) -> None:
        """Allocate zeros; `layers` has offset, inputs, outputs and stride per layer."""
        self._layout = names, layers, size
        self.flat = _aligned_zeros(size)
        self._views: dict[str, Float32s] = {}
        for name, (offset, inputs, outputs, stride) in zip(names, layers, strict=True):
            end = offset + inputs * stride
            weights = self.flat[offset:end].reshape(inputs, stride)
            self._views[f"{name}.weight"] = weights[:, :outputs].T
            self._views[f"{name}.bias"] = self.flat[end : end + outputs]

    def arrays(self) -> Arrays:
        """Copies of the arrays: weights, (outputs, inputs), and biases."""
        return {name: view.copy(order="C") for name, view in self._views.items()}

    def load(self, arrays: Arrays, prefix: str = "") -> None:
        """Copy arrays by name.

        Raises:
            ValueError: an array is missing, has another shape, or has numbers that are not finite.
        """
        for name, view in self._views.items():
            array = arrays.get(prefix + name)
            if array is None or array.shape != view.shape:
                given = "none" if array is None else array.shape
                raise ValueError(
                    f"the weights {prefix}{name} must have shape {view.shape}, got {given}"
                )
            if not np.isfinite(array).all():
                raise ValueError(f"the weights {prefix}{name} must be finite numbers")
        for name, view in self._views.items():
            view[:] = arrays[prefix + name]

    def zeros_like(self) -> "Parameters":
        """Zeros in the same layout."""
        return Parameters(*self._layout)


def layer_names(network: str, widths: Sequence[int]) -> list[str]:
    """Names of the layers, numbered as in PyTorch's `Sequential`, where activations count too."""
    return [f"{network}.{2 * layer}" for layer in range(len(widths) - 1)]


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


def _aligned_zeros(size: int) -> Float32s:
    """Zeros that start at a cache line: vectors that straddle two lines load slower."""
    zeros = np.zeros(size + _CACHE_LINE_FLOATS, np.float32)
    start = -zeros.ctypes.data // zeros.itemsize % _CACHE_LINE_FLOATS
    return zeros[start : start + size]

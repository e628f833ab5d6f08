"""Learner for any PyTorch network on any device, with gradients by autograd."""

import threading
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from cagepool import _core
from cagepool._stages import stage
from cagepool.policy.networks import (
    SIZES,
    EntityNetwork,
    MlpNetwork,
    NetworkInputs,
    NetworkOutputs,
    NetworkSpec,
    load_network_arrays,
    make_network,
    network_arrays,
    state_size,
)
from cagepool.train.config import PpoConfig
from cagepool.train.learner import (
    LossCoefficients,
    LossTerms,
    RolloutValues,
    Sequences,
    Transitions,
    actor_widths,
    critic_widths,
    initial_weights,
)
from cagepool.train.loss import LossTargets, loss_terms, ppo_loss
from cagepool.train.rollout import Actor, Rollout, RolloutShape, Truncation
from cagepool.types import Arrays, Bools, Bytes, Float32s, Int64s

ADAM_BETAS = (0.9, 0.999)
ADAM_EPSILON = 1e-8

_thread = threading.local()


class TorchLearner:
    """A network with its Adam state; the loss is `ppo_loss`, its gradient that of autograd."""

    def __init__(self, config: PpoConfig, shape: RolloutShape, seed: int) -> None:
        """Create the network with weights drawn from the seed."""
        self._threads = config.threads
        self._max_grad_norm = config.max_grad_norm
        spec = network_spec(config, shape)
        self._sizes = sizes_array(config, spec)
        self._device = find_device(config.device)
        network = make_network(config.network, spec, seed)
        if config.network == "mlp":  # the same start as the native learner's
            widths = actor_widths(config, shape), critic_widths(config, shape)
            load_network_arrays(network, initial_weights(*widths, seed))
        self._network = network.to(self._device)
        self._is_recurrent = state_size(network) > 0
        self._flat = FlatParameters(network)
        self._optimizer = Adam(self._flat.weights)
        self._batch: _DeviceBatch | None = None

    def weights(self) -> Arrays:
        """Weights by name, with the sizes that a policy needs to build the network again.

        On the CPU, they share memory with the network.
        """
        return network_arrays(self._network) | self._sizes

    def values(self, rollout: Rollout) -> RolloutValues:
        """Values of all states of a rollout and of the last states of truncated episodes."""
        use_threads(self._threads)
        with torch.no_grad():
            if self._is_recurrent:
                return self._recurrent_values(rollout)
            steps = rollout.steps + 1
            states = self._values(rollout.features[:steps], rollout.critic_features)
            ends = [self._values(end.features, end.critic_features) for end in rollout.truncations]
            return RolloutValues(states, ends)

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
        terms = self._write_gradient(transitions, rows, coefficients)
        norms = [_clip_grad_norm(group, self._max_grad_norm) for group in self._flat.groups]
        self._optimizer.step(self._flat.gradient, learning_rate)
        return terms, norms[0]

    def gradient(
        self, transitions: Transitions, rows: Int64s, coefficients: LossCoefficients
    ) -> tuple[LossTerms, Arrays]:
        """Loss terms of a minibatch, and the gradient of its loss before clipping, by name."""
        terms = self._write_gradient(transitions, rows, coefficients)
        views = self._flat.named_views(self._flat.gradient)
        return terms, {name: view.cpu().numpy().copy() for name, view in views.items()}

    def _write_gradient(
        self, transitions: Transitions, rows: Int64s, coefficients: LossCoefficients
    ) -> LossTerms:
        """Write the gradient of a minibatch's loss to the gradients of the parameters."""
        use_threads(self._threads)
        if self._batch is None or self._batch.transitions is not transitions:
            self._batch = _DeviceBatch(transitions, self._device)
        batch = self._batch
        index = _to_tensor(rows, self._device)
        targets = batch.targets.rows(index)
        logits, values = (
            self._row_outputs(batch, index, targets.action_masks)
            if transitions.sequences is None
            else self._sequence_outputs(batch, transitions.sequences, rows)
        )
        loss, terms = ppo_loss(logits, values, targets, coefficients)
        self._flat.gradient.zero_()
        loss.backward()  # type: ignore[no-untyped-call] # of torch
        return loss_terms(terms)

    def arrays(self) -> Arrays:
        """Weights and Adam state by their names in a checkpoint."""
        result = self.weights()
        for moment, flat in self._adam_moments.items():
            for name, view in self._flat.named_views(flat).items():
                result[f"adam.{moment}.{name}"] = view.cpu().numpy()
        result["adam.step"] = np.array([float(self._optimizer.steps)])
        return result

    def load_arrays(self, arrays: Arrays) -> None:
        """Load weights and Adam state from the arrays of a checkpoint."""
        load_network_arrays(self._network, arrays)
        self._optimizer.steps = int(arrays["adam.step"][0])
        for moment, flat in self._adam_moments.items():
            for name, view in self._flat.named_views(flat).items():
                values = _to_tensor(arrays[f"adam.{moment}.{name}"].copy(), self._device)
                if values.shape != view.shape:
                    raise ValueError(f"the moments {name} must have shape {tuple(view.shape)}")
                view.copy_(values)

    def close(self) -> None:
        """Do nothing: PyTorch's threads belong to the process."""

    @property
    def _adam_moments(self) -> dict[str, torch.Tensor]:
        return {"exp_avg": self._optimizer.exp_avg, "exp_avg_sq": self._optimizer.exp_avg_sq}

    def _row_outputs(
        self, batch: "_DeviceBatch", index: torch.Tensor, masks: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits and values of transitions that do not depend on each other."""
        all_features, all_critic_features, _ = batch.inputs
        features = all_features[index][None]
        is_shared = all_critic_features is all_features
        critic_features = features if is_shared else all_critic_features[index][None]
        state = features.new_zeros(len(index), 0)
        allowed = None if masks is None else masks[None]
        outputs = self._call(NetworkInputs(features, critic_features, allowed, state))
        assert outputs.values is not None
        return outputs.logits[0], outputs.values[0]

    def _sequence_outputs(
        self, batch: "_DeviceBatch", sequences: Sequences, rows: Int64s
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits and values of the rows, which are those of whole environments."""
        steps, n_envs = sequences.dones.shape
        envs = np.unique(rows % n_envs)
        index = _to_tensor(envs, self._device)
        features, critic_features, masks = (
            None if array is None else array.view(steps, n_envs, -1)[:, index]
            for array in batch.inputs
        )
        assert features is not None
        state = _to_tensor(sequences.initial_state[envs], self._device)
        inputs = NetworkInputs(features, critic_features, masks, state)
        outputs = [segment.outputs for segment in self._unroll(inputs, sequences.dones[:, envs])]
        logits = torch.cat([output.logits for output in outputs])
        values = torch.cat([output.values for output in outputs if output.values is not None])
        steps_of_rows, envs_of_rows = rows // n_envs, np.searchsorted(envs, rows % n_envs)
        cells = _to_tensor(steps_of_rows * len(envs) + envs_of_rows, self._device)
        return logits.flatten(0, 1)[cells], values.flatten()[cells]

    def _unroll(self, inputs: NetworkInputs, dones: Bools) -> Iterator["_Segment"]:
        """Call the network on the steps between episode ends, and reset its state there.

        Args:
            inputs: All steps; the state before the first one.
            dones: (steps, rows), whether the row's episode ended with this step.
        """
        state = inputs.state
        ends = np.flatnonzero(dones.any(1)) + 1
        bounds = [0, *ends[ends < len(dones)].tolist(), len(dones)]
        for first, end in pairwise(bounds):
            features, critic_features, masks = (
                None if array is None else array[first:end] for array in inputs[:3]
            )
            assert features is not None
            outputs = self._call(NetworkInputs(features, critic_features, masks, state))
            yield _Segment(end - 1, outputs)
            goes_on = _to_tensor(~dones[end - 1], self._device)
            state = torch.where(goes_on[:, None], outputs.state, 0.0)

    def _recurrent_values(self, rollout: Rollout) -> RolloutValues:
        steps = rollout.steps
        critic_features = rollout.critic_features
        assert rollout.initial_state is not None
        inputs = NetworkInputs(
            _to_tensor(rollout.features[: steps + 1], self._device),
            _to_tensor(
                (rollout.features if critic_features is None else critic_features)[: steps + 1],
                self._device,
            ),
            None
            if rollout.action_masks is None
            else _to_tensor(rollout.action_masks[: steps + 1], self._device).bool(),
            _to_tensor(rollout.initial_state, self._device),
        )
        dones = np.zeros((steps + 1, inputs.features.shape[1]), np.bool_)
        dones[:steps] = rollout.dones[:steps]
        states: list[Float32s] = []
        truncated: dict[int, Float32s] = {}  # by number of the truncation; actors have their own
        for step, outputs in self._unroll(inputs, dones):
            assert outputs.values is not None
            states.append(outputs.values.cpu().numpy())
            for number, end in enumerate(rollout.truncations):
                if end.step == step:
                    truncated[number] = self._end_values(end, outputs.state)
        return RolloutValues(
            np.concatenate(states), [truncated[number] for number in sorted(truncated)]
        )

    def _end_values(self, end: Truncation, state: torch.Tensor) -> Float32s:
        """Values of the last states of truncated episodes, given the states before them."""
        index = _to_tensor(end.env_ids, self._device)
        features = _to_tensor(end.features, self._device)[None]
        critic = end.critic_features
        critic_features = features if critic is None else _to_tensor(critic, self._device)[None]
        outputs = self._call(NetworkInputs(features, critic_features, None, state[index]))
        assert outputs.values is not None
        return outputs.values[0].cpu().numpy()

    def _values(self, features: Float32s, critic_features: Float32s | None) -> Float32s:
        """Values of states that do not depend on each other, (..., features)."""
        rows = _to_tensor(features.reshape(1, -1, features.shape[-1]), self._device)
        critic_rows = rows
        if critic_features is not None:
            critic = critic_features[: len(features)]
            critic_rows = _to_tensor(critic.reshape(1, -1, critic.shape[-1]), self._device)
        if isinstance(self._network, MlpNetwork | EntityNetwork):
            values = self._network.values(critic_rows)
        else:
            state = rows.new_zeros(rows.shape[1], 0)
            outputs = self._call(NetworkInputs(rows, critic_rows, None, state))
            assert outputs.values is not None
            values = outputs.values
        return values.cpu().numpy().reshape(features.shape[:-1])

    def _call(self, inputs: NetworkInputs) -> NetworkOutputs:
        return NetworkOutputs(*self._network(inputs))


class _Segment(NamedTuple):
    last_step: int
    outputs: NetworkOutputs


class _DeviceBatch:
    """Transitions on the device of the network, copied once per update."""

    def __init__(self, transitions: Transitions, device: torch.device) -> None:
        self.transitions = transitions
        self.targets = LossTargets.from_transitions(transitions, device)
        features = _to_tensor(transitions.features, device)
        critic = transitions.critic_features
        self.inputs = (
            features,
            features if critic is None else _to_tensor(critic, device),
            self.targets.action_masks,
        )


class TorchActor(Actor):
    """Actor with a copy of the network; actions are sampled on the CPU."""

    def __init__(self, config: PpoConfig, shape: RolloutShape) -> None:
        """Create a network for rollouts of this shape."""
        self._device = find_device(config.device)
        network = make_network(config.network, network_spec(config, shape))
        self._network = network.eval().to(self._device)
        self._state = torch.zeros(shape.n_envs, state_size(network), device=self._device)

    @property
    def state(self) -> Float32s | None:
        """Recurrent state, (environments, state size); None if the network has none."""
        return self._state.cpu().numpy() if self._state.shape[1] else None

    def load_state(self, state: Float32s) -> None:
        """Set the recurrent state."""
        self._state = _to_tensor(state.copy(), self._device)

    def weights(self) -> Arrays:
        """Weights by name."""
        return network_arrays(self._network)

    def load_weights(self, weights: Arrays) -> None:
        """Copy the weights of a learner."""
        load_network_arrays(self._network, weights)

    def logits(self, features: Float32s, masks: Bytes | None) -> Float32s:
        """Logits of the actions before masking; advances the state."""
        use_threads(1)
        allowed = None if masks is None else _to_tensor(masks, self._device).bool()[None]
        with torch.no_grad():
            inputs = NetworkInputs(
                _to_tensor(features, self._device)[None], None, allowed, self._state
            )
            logits, _, self._state = NetworkOutputs(*self._network(inputs))
        return np.ascontiguousarray(logits[0].cpu().numpy())

    def sample(
        self,
        features: Float32s,
        masks: Bytes | None,
        uniforms: Float32s,
        actions: Int64s,
        log_probs: Float32s,
    ) -> None:
        """Sample one action per environment and advance the state."""
        with stage("policy_forward"):
            logits = self.logits(features, masks)
        with stage("sampling"):
            _core.sample_choices(logits, masks, uniforms, actions, log_probs)

    def reset(self, env_ids: Int64s) -> None:
        """Clear the recurrent state of environments whose episode ended."""
        if self._state.shape[1]:
            self._state[_to_tensor(env_ids, self._device)] = 0


class FlatParameters:
    """All parameters of a network in one flat tensor, and their gradients in another.

    The actor's parameters come first, then the critic's: those whose name starts with `critic`.
    """

    def __init__(self, network: nn.Module) -> None:
        """Make the parameters and their gradients views of the flat tensors."""
        named = dict(network.named_parameters())
        names = sorted(named, key=lambda name: name.startswith("critic"))
        self._shapes = {name: named[name].shape for name in names}
        self.weights = torch.cat([named[name].detach().flatten() for name in names])
        self.gradient = torch.zeros_like(self.weights)
        gradients = self.named_views(self.gradient)
        for name, view in self.named_views(self.weights).items():
            named[name].data = view
            named[name].grad = gradients[name]
        actor_size = sum(named[name].numel() for name in names if not name.startswith("critic"))
        self.groups = (self.gradient[:actor_size], self.gradient[actor_size:])

    def named_views(self, flat: torch.Tensor) -> dict[str, torch.Tensor]:
        """Views into a tensor like `weights`, by parameter name and in the parameter's shape."""
        parts = torch.split(flat, [shape.numel() for shape in self._shapes.values()])
        return {
            name: part.view(shape)
            for (name, shape), part in zip(self._shapes.items(), parts, strict=True)
        }


class Adam:
    """Adam on one flat tensor; creating PyTorch's own loads its compiler, which takes seconds."""

    def __init__(self, weights: torch.Tensor) -> None:
        """Update these weights in place."""
        self.steps = 0
        self.exp_avg = torch.zeros_like(weights)
        self.exp_avg_sq = torch.zeros_like(weights)
        self._weights = weights
        self._denominator = torch.zeros_like(weights)

    def step(self, gradient: torch.Tensor, learning_rate: float) -> None:
        """Take one step down the gradient."""
        self.steps += 1
        beta1, beta2 = ADAM_BETAS
        bias_correction1, bias_correction2 = (1 - beta**self.steps for beta in ADAM_BETAS)
        self.exp_avg.lerp_(gradient, 1 - beta1)
        self.exp_avg_sq.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        denominator = torch.sqrt(self.exp_avg_sq, out=self._denominator)
        denominator.div_(bias_correction2**0.5).add_(ADAM_EPSILON)
        self._weights.addcdiv_(self.exp_avg, denominator, value=-learning_rate / bias_correction1)


def find_device(name: str) -> torch.device:
    """The device of that name; `auto` is a GPU if there is one, else the CPU."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).cpu()
    except (AssertionError, NotImplementedError, RuntimeError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"device {name} cannot be used here: {reason}") from error
    return device


def network_spec(config: PpoConfig, shape: RolloutShape) -> NetworkSpec:
    """Sizes of the networks for rollouts of this shape."""
    critic_features = shape.critic_features or shape.features
    return NetworkSpec(
        shape.features,
        critic_features,
        shape.actions,
        hidden=config.hidden,
        critic_hidden=config.critic_hidden or config.hidden,
        activation=config.activation,
        hosts=shape.hosts,
    )


def sizes_array(config: PpoConfig, spec: NetworkSpec) -> Arrays:
    """Sizes by their name in a checkpoint; the weights of MLPs show them."""
    if config.network == "mlp":
        return {}
    return {SIZES: np.array([spec.features, spec.critic_features, spec.actions])}


def use_threads(count: int) -> None:
    """Set the threads that PyTorch uses per operation when called from this thread."""
    if getattr(_thread, "count", 0) != count:
        torch.set_num_threads(count)
        _thread.count = count


def _to_tensor(array: NDArray[Any], device: torch.device) -> torch.Tensor:
    # Arrays from Ray's object store are read-only, which PyTorch does not support.
    return torch.from_numpy(array if array.flags.writeable else array.copy()).to(device)


def _clip_grad_norm(gradient: torch.Tensor, max_norm: float) -> float:
    """Scale a gradient down to the maximum norm; returns its norm before."""
    norm = float(torch.linalg.vector_norm(gradient))
    if norm > max_norm:
        gradient.mul_(max_norm / norm)
    return norm

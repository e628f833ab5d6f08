"""Gradient steps on the actor and critic: MLP passes, gradient clipping and Adam.

Forward pass, backward pass and optimizer are written by hand, in preallocated buffers. Autograd
allocates every intermediate result and accumulates the gradients of all threads in one place; here
each thread has its own gradient. Tests compare all three with PyTorch's own.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from cagepool import _core
from cagepool._stages import stage
from cagepool.train.config import PpoConfig
from cagepool.train.learner import (
    LossCoefficients,
    LossTerms,
    RolloutValues,
    Transitions,
    sum_terms,
)
from cagepool.train.networks import Networks
from cagepool.train.rollout import Rollout, RolloutShape
from cagepool.types import Arrays, Bytes, Float32s, Int64s

_thread = threading.local()
MIN_ROWS_PER_THREAD = 256  # below this, handing rows to another thread costs more than it saves
ADAM_BETAS = (0.9, 0.999)
ADAM_EPSILON = 1e-8

_tanh_backward = torch.ops.aten.tanh_backward.grad_input
_relu_backward = torch.ops.aten.threshold_backward.grad_input

ACTIVATION_FORWARD: dict[type[nn.Module], Callable[[torch.Tensor], torch.Tensor]] = {
    nn.Tanh: torch.tanh_,
    nn.ReLU: torch.relu_,
}
# In-place backward pass of an activation, from its output.
ACTIVATION_BACKWARD: dict[type[nn.Module], Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    nn.Tanh: lambda gradient, output: _tanh_backward(gradient, output, grad_input=gradient),
    nn.ReLU: lambda gradient, output: _relu_backward(gradient, output, 0, grad_input=gradient),
}


class NetworkOutputs(NamedTuple):
    """Outputs of actor and critic, or the gradient of the loss by them."""

    logits: torch.Tensor  # (rows, actions)
    values: torch.Tensor  # (rows,)


class MinibatchPart(NamedTuple):
    """Rows of a minibatch that one thread computes."""

    rows: Int64s  # indices of transitions
    minibatch_size: int


def write_loss_gradient(
    outputs: NetworkOutputs,
    transitions: Transitions,
    part: MinibatchPart,
    coefficients: LossCoefficients,
    gradient: NetworkOutputs,
) -> LossTerms:
    """Write the gradient of a minibatch's loss by the outputs for a part of its rows."""
    terms = _core.ppo_loss_gradient(
        logits=outputs.logits.numpy(),
        values=outputs.values.numpy(),
        rows=part.rows,
        minibatch_size=part.minibatch_size,
        masks=transitions.action_masks,
        chosen=transitions.actions,
        log_probabilities=transitions.log_probs,
        advantages=transitions.advantages,
        old_values=transitions.values,
        returns=transitions.returns,
        logits_gradient=gradient.logits.numpy(),
        values_gradient=gradient.values.numpy(),
        clip_range=coefficients.clip_range,
        clip_range_vf=coefficients.clip_range_vf,
        ent_coef=coefficients.ent_coef,
    )
    return LossTerms(*terms)


class MlpLearner:
    """Two MLPs with their Adam state and the threads of an update.

    The rows of a minibatch are split among the threads. The gradients of the parts are added in
    order, so the result does not depend on timing.
    """

    def __init__(self, config: PpoConfig, shape: RolloutShape, seed: int) -> None:
        """Draw the weights from the seed; close the learner to stop its threads."""
        set_torch_threads(1)  # the count decides the rounding of sums
        networks = Networks(shape.features, shape.actions, config.hidden, config.activation, seed)
        self.networks = networks
        self._max_grad_norm = config.max_grad_norm
        self._gradient = torch.zeros_like(networks.flat)
        self._optimizer = Adam(networks.flat)
        self._critic = MlpForward(networks.critic)
        self._workers = [GradientWorker(networks) for _ in range(config.threads)]
        self._executor = start_threads(config.threads - 1)

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
        own, *others = self._workers[: max(1, len(rows) // MIN_ROWS_PER_THREAD)]
        first, *rest = (
            MinibatchPart(part, len(rows)) for part in np.array_split(rows, 1 + len(others))
        )
        pending = [
            self._executor.submit(worker.write_gradient_in_thread, transitions, part, coefficients)
            for worker, part in zip(others, rest, strict=True)
        ]
        terms = [own.write_gradient(transitions, first, coefficients)]
        with stage("thread_wait"):
            terms += [future.result() for future in pending]
        torch.sum(
            torch.stack([worker.gradient for worker in (own, *others)]), 0, out=self._gradient
        )
        actor_gradient, critic_gradient = self.networks.split(self._gradient)
        norm = _clip_grad_norm(actor_gradient, self._max_grad_norm)
        _clip_grad_norm(critic_gradient, self._max_grad_norm)
        self._optimizer.step(self._gradient, learning_rate)
        return sum_terms(terms), norm

    def weights(self) -> Arrays:
        """Weights by name; they share memory with the networks."""
        return self.networks.arrays()

    def values(self, rollout: Rollout) -> RolloutValues:
        """Values of all states of a rollout and of the last states of truncated episodes."""
        return RolloutValues(
            self._values(rollout.features[: rollout.steps + 1]),
            [self._values(end.features) for end in rollout.truncations],
        )

    def _values(self, features: Float32s) -> Float32s:
        rows = torch.from_numpy(features.reshape(-1, features.shape[-1]))
        return self._critic.forward(rows).reshape(features.shape[:-1]).numpy().copy()

    def arrays(self) -> Arrays:
        """Weights and Adam state by their names in a checkpoint."""
        result = dict(self.networks.arrays())
        for moment, flat in self._adam_moments.items():
            for name, view in self.networks.named_views(flat).items():
                result[f"adam.{moment}.{name}"] = view.numpy()
        result["adam.step"] = np.array([float(self._optimizer.steps)])
        return result

    def load_arrays(self, arrays: Arrays) -> None:
        """Load weights and Adam state from the arrays of a checkpoint."""
        self.networks.load_arrays(arrays)
        self._optimizer.steps = int(arrays["adam.step"][0])
        for moment, flat in self._adam_moments.items():
            for name, view in self.networks.named_views(flat).items():
                values = torch.tensor(arrays[f"adam.{moment}.{name}"])
                if values.shape != view.shape:
                    raise ValueError(f"the moments {name} must have shape {tuple(view.shape)}")
                view.copy_(values)

    def close(self) -> None:
        """Stop the threads."""
        self._executor.shutdown()

    @property
    def _adam_moments(self) -> dict[str, torch.Tensor]:
        return {"exp_avg": self._optimizer.exp_avg, "exp_avg_sq": self._optimizer.exp_avg_sq}


class MlpActor:
    """Actor with a copy of the MLPs."""

    @property
    def state(self) -> Float32s | None:
        """None: MLPs have no recurrent state."""
        return None

    def load_state(self, state: Float32s) -> None:
        """Do nothing: MLPs have no recurrent state."""

    def __init__(self, config: PpoConfig, shape: RolloutShape) -> None:
        """Create networks for rollouts of this shape."""
        self._networks = Networks(
            shape.features, shape.actions, config.hidden, config.activation, seed=0
        )
        self._forward = MlpForward(self._networks.actor)

    def weights(self) -> Arrays:
        """Weights by name."""
        return self._networks.arrays()

    def load_weights(self, weights: Arrays) -> None:
        """Copy the weights of a learner."""
        self._networks.load_arrays(weights)

    def logits(self, features: Float32s, _masks: Bytes | None = None) -> Float32s:
        """Logits of the actions, (rows, actions); the next call overwrites them."""
        _use_one_thread()
        with torch.inference_mode():
            return self._forward.forward(torch.from_numpy(features)).numpy()

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
            logits = self.logits(features)
        with stage("sampling"):
            _core.sample_choices(logits, masks, uniforms, actions, log_probs)

    def reset(self, env_ids: Int64s) -> None:
        """Do nothing: MLPs have no recurrent state."""


class GradientWorker:
    """Computes the gradient of one part of a minibatch, in its own buffers."""

    def __init__(self, networks: Networks) -> None:
        """Read the networks' current weights at every call."""
        self.gradient = torch.zeros_like(networks.flat)
        actor_gradient, critic_gradient = networks.split(self.gradient)
        self._actor = MlpBackward(networks.actor, actor_gradient)
        self._critic = MlpBackward(networks.critic, critic_gradient)
        self._features = torch.empty(0)

    def write_gradient(
        self, transitions: Transitions, part: MinibatchPart, coefficients: LossCoefficients
    ) -> LossTerms:
        """Write the part's contribution to the gradient of the minibatch loss into `gradient`."""
        if len(self._features) != len(part.rows):
            self._features = torch.empty(len(part.rows), transitions.features.shape[1])
        features = torch.index_select(
            torch.from_numpy(transitions.features),
            0,
            torch.from_numpy(part.rows),
            out=self._features,
        )
        outputs = NetworkOutputs(
            self._actor.forward(features), self._critic.forward(features)[:, 0]
        )
        gradient = NetworkOutputs(
            self._actor.output_gradient(), self._critic.output_gradient()[:, 0]
        )
        terms = write_loss_gradient(outputs, transitions, part, coefficients, gradient)
        self._actor.backward(features)
        self._critic.backward(features)
        return terms

    def write_gradient_in_thread(
        self, transitions: Transitions, part: MinibatchPart, coefficients: LossCoefficients
    ) -> LossTerms:
        """Call `write_gradient` in a thread that no profiling stage covers yet."""
        with stage("update"):
            return self.write_gradient(transitions, part, coefficients)


class MlpForward:
    """Forward pass of an MLP with its current weights, without the overhead of module calls."""

    def __init__(self, network: nn.Sequential) -> None:
        """Take linear layers with one kind of activation between them."""
        layers = [layer for layer in network if isinstance(layer, nn.Linear)]
        self._weights = [layer.weight.detach() for layer in layers]
        self._transposed = [weights.t() for weights in self._weights]
        self._biases = [layer.bias.detach() for layer in layers]
        self._activation = type(network[1])
        self._buffers: list[torch.Tensor] = []  # outputs per layer, for the most rows so far
        self._outputs: list[torch.Tensor] = []  # the rows of the buffers in use

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return one output row per input row; the next call overwrites them."""
        activate = ACTIVATION_FORWARD[self._activation]
        self._outputs = self._resized(self._buffers, self._outputs, len(inputs))
        *hidden, last = zip(self._biases, self._transposed, self._outputs, strict=True)
        for biases, weights, outputs in hidden:
            torch.addmm(biases, inputs, weights, out=outputs)
            inputs = activate(outputs)
        biases, weights, outputs = last
        return torch.addmm(biases, inputs, weights, out=outputs)

    def _resized(
        self, buffers: list[torch.Tensor], current: list[torch.Tensor], rows: int
    ) -> list[torch.Tensor]:
        """Views of that many rows of the buffers, which grow if needed."""
        if current and len(current[0]) == rows:
            return current
        if not buffers or len(buffers[0]) < rows:
            buffers[:] = [torch.empty(rows, len(biases)) for biases in self._biases]
        return [buffer[:rows] for buffer in buffers]


class MlpBackward(MlpForward):
    """Forward and backward pass of an MLP."""

    def __init__(self, network: nn.Sequential, gradient: torch.Tensor) -> None:
        """Write gradients to `gradient`, which is flat and in the order of the parameters."""
        super().__init__(network)
        shapes = [weights.shape for weights in network.parameters()]
        parts = torch.split(gradient, [shape.numel() for shape in shapes])
        views = [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]
        self._gradients = list(zip(views[::2], views[1::2], strict=True))
        self._gradient_buffers: list[torch.Tensor] = []
        self._output_gradients: list[torch.Tensor] = []  # per layer

    def output_gradient(self) -> torch.Tensor:
        """Buffer for the gradient of the loss by the last outputs, to fill before `backward`."""
        rows = len(self._outputs[0])
        self._output_gradients = self._resized(self._gradient_buffers, self._output_gradients, rows)
        return self._output_gradients[-1]

    def backward(self, inputs: torch.Tensor) -> None:
        """Write the gradients of the weights, given the inputs of the last forward pass."""
        activation_backward = ACTIVATION_BACKWARD[self._activation]
        layer_inputs = [inputs, *self._outputs[:-1]]
        for layer in reversed(range(len(layer_inputs))):
            output_gradient = self._output_gradients[layer]
            weights_gradient, biases_gradient = self._gradients[layer]
            torch.mm(output_gradient.t(), layer_inputs[layer], out=weights_gradient)
            torch.sum(output_gradient, 0, out=biases_gradient)
            if layer > 0:
                input_gradient = self._output_gradients[layer - 1]
                torch.mm(output_gradient, self._weights[layer], out=input_gradient)
                activation_backward(input_gradient, layer_inputs[layer])


class Adam:
    """Adam on one flat tensor; importing PyTorch's own takes longer than a short training."""

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


def start_threads(count: int) -> ThreadPoolExecutor:
    """Start a pool of threads, at least one, in which PyTorch starts no threads of its own."""
    return ThreadPoolExecutor(max(1, count), initializer=set_torch_threads, initargs=(1,))


def set_torch_threads(count: int) -> None:
    """Set the threads that PyTorch uses per operation when called from this thread."""
    torch.set_num_threads(count)


def _use_one_thread() -> None:
    """Let PyTorch use one thread per operation in the calling thread, which may be a new one."""
    if not getattr(_thread, "is_set", False):
        set_torch_threads(1)
        _thread.is_set = True


def _clip_grad_norm(gradient: torch.Tensor, max_norm: float) -> float:
    """Scale a gradient down to the maximum norm; returns its norm before."""
    norm = float(torch.linalg.vector_norm(gradient))
    if norm > max_norm:
        gradient.mul_(max_norm / norm)
    return norm

"""Through a network and back by hand: what autograd does, in memory that is made once.

Autograd makes new memory for every result, and its threads would add up their gradients in one
place. Tests hold the two equal.
"""

from collections.abc import Callable

import torch
from torch import nn

_tanh_slopes = torch.ops.aten.tanh_backward.grad_input
_relu_slopes = torch.ops.aten.threshold_backward.grad_input

ACTIVATE: dict[type[nn.Module], Callable[[torch.Tensor], torch.Tensor]] = {
    nn.Tanh: torch.tanh_,
    nn.ReLU: torch.relu_,
}
# Slopes by what went into an activation from those by what came out, in their place.
DERIVE: dict[type[nn.Module], Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    nn.Tanh: lambda slopes, outputs: _tanh_slopes(slopes, outputs, grad_input=slopes),
    nn.ReLU: lambda slopes, outputs: _relu_slopes(slopes, outputs, 0, grad_input=slopes),
}


class Forward:
    """A network as it now is; at a hundred rows, calling modules would take as long as the sums."""

    def __init__(self, network: nn.Sequential) -> None:
        """Take linear layers with one activation between them."""
        layers = [layer for layer in network if isinstance(layer, nn.Linear)]
        self._weights = [layer.weight.detach() for layer in layers]
        self._transposed = [weights.t() for weights in self._weights]
        self._biases = [layer.bias.detach() for layer in layers]
        self._activation = type(network[1])
        self._memory: list[torch.Tensor] = []  # outputs of the layers, for the most rows so far
        self._outputs: list[torch.Tensor] = []  # the part that is in use

    def run(self, inputs: torch.Tensor) -> torch.Tensor:
        """What comes out, a row for each row of inputs, until the next call."""
        activate = ACTIVATE[self._activation]
        self._outputs = self._fit(self._memory, self._outputs, len(inputs))
        *hidden, last = zip(self._biases, self._transposed, self._outputs, strict=True)
        for biases, weights, outputs in hidden:
            torch.addmm(biases, inputs, weights, out=outputs)
            inputs = activate(outputs)
        biases, weights, outputs = last
        return torch.addmm(biases, inputs, weights, out=outputs)

    def _fit(
        self, memory: list[torch.Tensor], used: list[torch.Tensor], rows: int
    ) -> list[torch.Tensor]:
        """So many rows of the memory, which grows if it must."""
        if used and len(used[0]) == rows:
            return used
        if not memory or len(memory[0]) < rows:
            memory[:] = [torch.empty(rows, len(biases)) for biases in self._biases]
        return [part[:rows] for part in memory]


class Backward(Forward):
    """A network with the way back."""

    def __init__(self, network: nn.Sequential, gradient: torch.Tensor) -> None:
        """Write into `gradient`, which has a number for each of the network's, in their order."""
        super().__init__(network)
        shapes = [weights.shape for weights in network.parameters()]
        parts = torch.split(gradient, [shape.numel() for shape in shapes])
        views = [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]
        self._gradients = list(zip(views[::2], views[1::2], strict=True))
        self._slope_memory: list[torch.Tensor] = []
        self._slopes: list[torch.Tensor] = []

    def slopes(self) -> torch.Tensor:
        """Where the slopes of the loss by the last outputs go before `back`."""
        self._slopes = self._fit(self._slope_memory, self._slopes, len(self._outputs[0]))
        return self._slopes[-1]

    def back(self, inputs: torch.Tensor) -> None:
        """Write the gradient, from the inputs that went in last and the slopes."""
        derive = DERIVE[self._activation]
        before = [inputs, *self._outputs[:-1]]
        for layer in reversed(range(len(before))):
            slopes = self._slopes[layer]
            of_weights, of_biases = self._gradients[layer]
            torch.mm(slopes.t(), before[layer], out=of_weights)
            torch.sum(slopes, 0, out=of_biases)
            if layer > 0:
                torch.mm(slopes, self._weights[layer], out=self._slopes[layer - 1])
                derive(self._slopes[layer - 1], before[layer])

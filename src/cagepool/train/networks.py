"""Actor and critic."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import nn

from cagepool.runs import Arrays

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}

IN_PLACE: dict[type[nn.Module], Callable[[torch.Tensor], torch.Tensor]] = {
    nn.Tanh: torch.tanh_,
    nn.ReLU: torch.relu_,
}


class Networks(nn.Module):
    """Two networks that share nothing, so that neither disturbs what the other has learned."""

    def __init__(
        self, inputs: int, choices: int, hidden: Sequence[int], activation: str, seed: int
    ) -> None:
        """Make both, with orthogonal weights that follow from the seed."""
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.actor = _layers((inputs, *hidden, choices), activation)
        self.critic = _layers((inputs, *hidden, 1), activation)
        # An almost even policy at first, and values near their mean.
        _start(self.actor, generator, last_gain=0.01)
        _start(self.critic, generator, last_gain=1.0)

    def logits(self, inputs: torch.Tensor) -> torch.Tensor:
        """Logits of the choices, (rows, choices)."""
        return self.actor(inputs)  # type: ignore[no-any-return] # nn.Module is untyped

    def values(self, inputs: torch.Tensor) -> torch.Tensor:
        """Values of the states, (rows,)."""
        return self.critic(inputs).squeeze(-1)  # type: ignore[no-any-return]

    def arrays(self) -> Arrays:
        """All weights by name; the memory is shared."""
        return {name: weights.detach().numpy() for name, weights in self.named_parameters()}

    def take(self, arrays: Arrays) -> None:
        """Copy weights from arrays.

        Raises:
            ValueError: they are not those of such networks.
        """
        with torch.no_grad():
            for name, weights in self.named_parameters():
                if name not in arrays or arrays[name].shape != tuple(weights.shape):
                    raise ValueError(f"the weights {name} must be {tuple(weights.shape)} numbers")
                weights.copy_(torch.tensor(arrays[name]))


class Player:
    """The actor as it is played with: always its present weights, into memory made once.

    At a hundred rows a step, making tensors and calling modules would take as long as the sums.
    """

    def __init__(self, networks: Networks, rows: int) -> None:
        """Play with this many games at once."""
        linear = [layer for layer in networks.actor if isinstance(layer, nn.Linear)]
        self._layers = [
            (layer.weight.detach().t(), layer.bias.detach(), torch.empty(rows, layer.out_features))
            for layer in linear
        ]
        self._activate = IN_PLACE[type(networks.actor[1])]

    def logits(self, inputs: torch.Tensor) -> torch.Tensor:
        """Logits of the choices, (rows, choices), until the next call."""
        *hidden, (weights, biases, result) = self._layers
        for layer_weights, layer_biases, out in hidden:
            torch.addmm(layer_biases, inputs, layer_weights, out=out)
            inputs = self._activate(out)
        return torch.addmm(biases, inputs, weights, out=result)


def _layers(widths: Sequence[int], activation: str) -> nn.Sequential:
    modules: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        modules += [nn.Linear(inputs, outputs), ACTIVATIONS[activation]()]
    return nn.Sequential(*modules[:-1])


def _start(network: nn.Sequential, generator: torch.Generator, last_gain: float) -> None:
    linear = [layer for layer in network if isinstance(layer, nn.Linear)]
    for layer in linear:
        gain = last_gain if layer is linear[-1] else 2**0.5
        nn.init.orthogonal_(layer.weight, gain, generator=generator)
        nn.init.zeros_(layer.bias)

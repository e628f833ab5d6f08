"""Actor and critic."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn

from cagepool.types import Arrays

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}


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
        # All weights in one row, so that an optimiser has one array to work on instead of many.
        self.flat = nn.utils.parameters_to_vector(self.parameters()).detach()
        for name, weights in self.named_parameters():
            weights.data = self.named(self.flat)[name]

    def named(self, flat: torch.Tensor) -> dict[str, torch.Tensor]:
        """The parts of a row like `flat`, in the shapes and by the names of the weights."""
        shapes = {name: weights.shape for name, weights in self.named_parameters()}
        parts = torch.split(flat, [shape.numel() for shape in shapes.values()])
        return {
            name: part.view(shape)
            for (name, shape), part in zip(shapes.items(), parts, strict=True)
        }

    def halves(self, flat: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The actor's part and the critic's of a row like `flat`."""
        of_actor = sum(weights.numel() for weights in self.actor.parameters())
        return flat[:of_actor], flat[of_actor:]

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

"""Actor and critic networks."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn

from cagepool.types import Arrays

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}


class Networks(nn.Module):
    """Actor and critic: two MLPs that share no weights."""

    def __init__(
        self, features: int, actions: int, hidden: Sequence[int], activation: str, seed: int
    ) -> None:
        """Initialize both with orthogonal weights drawn from the seed."""
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.actor = _mlp((features, *hidden, actions), activation)
        self.critic = _mlp((features, *hidden, 1), activation)
        # A small gain on the actor's last layer: an almost uniform policy at the start.
        _initialize(self.actor, generator, last_gain=0.01)
        _initialize(self.critic, generator, last_gain=1.0)
        # All weights in one flat tensor, so that the optimizer works on one array.
        self.flat = nn.utils.parameters_to_vector(self.parameters()).detach()
        for name, weights in self.named_parameters():
            weights.data = self.named_views(self.flat)[name]

    def named_views(self, flat: torch.Tensor) -> dict[str, torch.Tensor]:
        """Views into a tensor like `flat`, by parameter name and in the parameter's shape."""
        shapes = {name: weights.shape for name, weights in self.named_parameters()}
        parts = torch.split(flat, [shape.numel() for shape in shapes.values()])
        return {
            name: part.view(shape)
            for (name, shape), part in zip(shapes.items(), parts, strict=True)
        }

    def split(self, flat: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The actor's and the critic's part of a tensor like `flat`."""
        actor_size = sum(weights.numel() for weights in self.actor.parameters())
        return flat[:actor_size], flat[actor_size:]

    def logits(self, features: torch.Tensor) -> torch.Tensor:
        """Logits of the actions, (rows, actions)."""
        return self.actor(features)  # type: ignore[no-any-return] # nn.Module is untyped

    def values(self, features: torch.Tensor) -> torch.Tensor:
        """Values of the states, (rows,)."""
        return self.critic(features).squeeze(-1)  # type: ignore[no-any-return]

    def arrays(self) -> Arrays:
        """Weights by name; they share memory with the networks."""
        return {name: weights.detach().numpy() for name, weights in self.named_parameters()}

    def load_arrays(self, arrays: Arrays) -> None:
        """Copy weights from arrays.

        Raises:
            ValueError: an array is missing or has another shape.
        """
        with torch.no_grad():
            for name, weights in self.named_parameters():
                if name not in arrays or arrays[name].shape != tuple(weights.shape):
                    shape = arrays[name].shape if name in arrays else "none"
                    raise ValueError(
                        f"the weights {name} must have shape {tuple(weights.shape)}, got {shape}"
                    )
                weights.copy_(torch.tensor(arrays[name]))


def _mlp(widths: Sequence[int], activation: str) -> nn.Sequential:
    modules: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        modules += [nn.Linear(inputs, outputs), ACTIVATIONS[activation]()]
    return nn.Sequential(*modules[:-1])


def _initialize(network: nn.Sequential, generator: torch.Generator, last_gain: float) -> None:
    linear = [layer for layer in network if isinstance(layer, nn.Linear)]
    for layer in linear:
        gain = last_gain if layer is linear[-1] else 2**0.5
        nn.init.orthogonal_(layer.weight, gain, generator=generator)
        nn.init.zeros_(layer.bias)

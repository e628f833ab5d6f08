"""The optimiser, on one row of weights.

By hand because PyTorch's own loads its compiler when it is made, which takes longer than many a
training; a test holds the two equal.
"""

import torch

DECAYS = (0.9, 0.999)  # of the means of gradients and of their squares
LEAST = 1e-8  # keeps the step finite where there was no gradient


class Adam:
    """Steps down a gradient, each number by its own size."""

    def __init__(self, weights: torch.Tensor) -> None:
        """Change these weights, in place."""
        self.steps = 0
        self.mean = torch.zeros_like(weights)
        self.square = torch.zeros_like(weights)
        self._weights = weights
        self._size = torch.zeros_like(weights)

    def step(self, gradient: torch.Tensor, learning_rate: float) -> None:
        """Take a step."""
        self.steps += 1
        of_mean, of_square = (1 - decay**self.steps for decay in DECAYS)  # they began at 0
        self.mean.lerp_(gradient, 1 - DECAYS[0])
        self.square.mul_(DECAYS[1]).addcmul_(gradient, gradient, value=1 - DECAYS[1])
        torch.sqrt(self.square, out=self._size).div_(of_square**0.5).add_(LEAST)
        self._weights.addcdiv_(self.mean, self._size, value=-learning_rate / of_mean)

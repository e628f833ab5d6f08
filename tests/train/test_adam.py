"""The optimiser, beside PyTorch's own."""

import numpy as np
import torch

from cagepool.train.adam import Adam


def test_steps_are_those_of_pytorch() -> None:
    generator = torch.Generator().manual_seed(1)
    weights = torch.randn(50, generator=generator)
    twin = weights.clone()
    ours, theirs = Adam(weights), torch.optim.Adam([twin])
    for rate in (1e-2, 3e-3, 1e-3):
        for size in (10.0, 1e-3, 0.0):
            gradient = size * torch.randn(50, generator=generator)
            ours.step(gradient, rate)
            twin.grad = gradient.clone()
            theirs.param_groups[0]["lr"] = rate
            theirs.step()
            # Single precision, in another order of operations.
            np.testing.assert_allclose(weights.numpy(), twin.numpy(), rtol=1e-5, atol=1e-7)
    assert ours.steps == 9

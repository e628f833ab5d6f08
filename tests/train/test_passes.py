"""Passes through networks and back, beside autograd."""

import numpy as np
import pytest
import torch

from cagepool.train.gradient import PartGradient
from cagepool.train.loss import LossRule, Outputs, Part, loss
from cagepool.train.networks import Networks
from cagepool.train.passes import Backward, Forward
from tests.train.rows import Drawn, drawn_rows

CASES = [((8,), "tanh"), ((8, 6), "relu"), ((7, 8, 9), "tanh")]


@pytest.mark.parametrize(("hidden", "activation"), CASES)
def test_a_pass_and_its_way_back_are_those_of_autograd(
    hidden: tuple[int, ...], activation: str
) -> None:
    networks = Networks(5, 4, hidden, activation, seed=1)
    gradient = torch.zeros_like(networks.flat)
    of_actor, _ = networks.halves(gradient)
    there_and_back = Backward(networks.actor, of_actor)
    generator = torch.Generator().manual_seed(2)
    for rows in (6, 9, 3):  # more, and fewer: memory grows once
        inputs = torch.randn(rows, 5, generator=generator)
        slopes = torch.randn(rows, 4, generator=generator)
        expected = networks.logits(inputs)
        networks.zero_grad()
        expected.backward(slopes)  # type: ignore[no-untyped-call] # of torch

        found = there_and_back.run(inputs)
        there_and_back.slopes().copy_(slopes)
        there_and_back.back(inputs)

        close(found, expected.detach())
        close(Forward(networks.actor).run(inputs), expected.detach())
        twins = torch.cat(
            [w.grad.flatten() for w in networks.actor.parameters() if w.grad is not None]
        )
        close(of_actor, twins)


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    # Single precision, and sums in another order.
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)


def test_parts_add_up_to_the_gradient_of_autograd() -> None:
    _, rows = drawn_rows(Drawn(seed=3, rows=20, choices=6, masked=True))
    rows = type(rows)(**{**vars(rows), "inputs": torch.randn(20, 5)})
    networks = Networks(5, 6, (8, 8), "tanh", seed=4)
    rule = LossRule(clip=0.2, value_clip=0.2, entropy=0.01)
    shuffled = torch.randperm(20)
    gradients = [PartGradient(networks), PartGradient(networks)]
    for gradient, some in zip(gradients, (shuffled[:13], shuffled[13:]), strict=True):
        gradient.write(rows, Part(some, 20), rule)

    total, _ = loss(Outputs(networks.logits(rows.inputs), networks.values(rows.inputs)), rows, rule)
    total.backward()  # type: ignore[no-untyped-call] # of torch

    expected = torch.cat([w.grad.flatten() for w in networks.parameters() if w.grad is not None])
    close(gradients[0].flat + gradients[1].flat, expected)


def test_weights_are_parts_of_one_row() -> None:
    networks = Networks(5, 6, (8, 8), "tanh", seed=4)
    networks.flat.fill_(0.5)
    assert all(bool((weights == 0.5).all()) for weights in networks.parameters())
    assert sum(map(len, networks.halves(networks.flat))) == len(networks.flat)

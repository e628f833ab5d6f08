"""MLP passes, gradients and Adam, compared with PyTorch's own; threads of a learner."""

import threading

import numpy as np
import pytest
import torch

from cagepool.train.config import PpoConfig
from cagepool.train.learner import LossCoefficients
from cagepool.train.loss import LossTargets, ppo_loss
from cagepool.train.mlp_learner import (
    Adam,
    GradientWorker,
    MinibatchPart,
    MlpBackward,
    MlpForward,
    MlpLearner,
)
from cagepool.train.networks import Networks
from cagepool.train.rollout import RolloutShape
from tests.train.random_transitions import RandomCase, random_transitions

CASES = [((8,), "tanh"), ((8, 6), "relu"), ((7, 8, 9), "tanh")]


@pytest.mark.parametrize(("hidden", "activation"), CASES)
def test_forward_and_backward_pass_equal_autograd(hidden: tuple[int, ...], activation: str) -> None:
    networks = Networks(5, 4, hidden, activation, seed=1)
    actor_gradient, _ = networks.split(torch.zeros_like(networks.flat))
    mlp = MlpBackward(networks.actor, actor_gradient)
    generator = torch.Generator().manual_seed(2)
    for rows in (6, 9, 3):  # more rows, then fewer: the buffers grow once
        inputs = torch.randn(rows, 5, generator=generator)
        output_gradient = torch.randn(rows, 4, generator=generator)
        expected = networks.logits(inputs)
        networks.zero_grad()
        expected.backward(output_gradient)  # type: ignore[no-untyped-call] # of torch

        outputs = mlp.forward(inputs)
        mlp.output_gradient().copy_(output_gradient)
        mlp.backward(inputs)

        assert_close(outputs, expected.detach())
        assert_close(MlpForward(networks.actor).forward(inputs), expected.detach())
        autograd = torch.cat(
            [w.grad.flatten() for w in networks.actor.parameters() if w.grad is not None]
        )
        assert_close(actor_gradient, autograd)


def assert_close(found: torch.Tensor, expected: torch.Tensor) -> None:
    # Single precision, and sums in another order.
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)


def test_gradients_of_the_parts_of_a_minibatch_add_up_to_autograd() -> None:
    _, transitions = random_transitions(RandomCase(seed=3, rows=20, actions=6, masked=True))
    transitions = type(transitions)(**{**vars(transitions), "features": torch.randn(20, 5).numpy()})
    networks = Networks(5, 6, (8, 8), "tanh", seed=4)
    coefficients = LossCoefficients(clip_range=0.2, clip_range_vf=0.2, ent_coef=0.01)
    shuffled = np.random.default_rng(0).permutation(20)
    workers = [GradientWorker(networks), GradientWorker(networks)]
    for worker, rows in zip(workers, (shuffled[:13], shuffled[13:]), strict=True):
        worker.write_gradient(transitions, MinibatchPart(rows, 20), coefficients)

    features = torch.from_numpy(transitions.features)
    targets = LossTargets.from_transitions(transitions, torch.device("cpu"))
    logits, values = networks.logits(features), networks.values(features)
    loss, _ = ppo_loss(logits, values, targets, coefficients)
    loss.backward()  # type: ignore[no-untyped-call] # of torch

    expected = torch.cat([w.grad.flatten() for w in networks.parameters() if w.grad is not None])
    assert_close(workers[0].gradient + workers[1].gradient, expected)


def test_the_weights_are_views_of_one_flat_tensor() -> None:
    networks = Networks(5, 6, (8, 8), "tanh", seed=4)
    networks.flat.fill_(0.5)
    assert all(bool((weights == 0.5).all()) for weights in networks.parameters())
    assert sum(map(len, networks.split(networks.flat))) == len(networks.flat)


def test_adam_takes_the_steps_of_pytorch() -> None:
    generator = torch.Generator().manual_seed(1)
    weights = torch.randn(50, generator=generator)
    expected = weights.clone()
    ours, theirs = Adam(weights), torch.optim.Adam([expected])
    for learning_rate in (1e-2, 3e-3, 1e-3):
        for scale in (10.0, 1e-3, 0.0):
            gradient = scale * torch.randn(50, generator=generator)
            ours.step(gradient, learning_rate)
            expected.grad = gradient.clone()
            theirs.param_groups[0]["lr"] = learning_rate
            theirs.step()
            # Single precision, in another order of operations.
            np.testing.assert_allclose(weights.numpy(), expected.numpy(), rtol=1e-5, atol=1e-7)
    assert ours.steps == 9


def test_a_closed_learner_leaves_no_thread() -> None:
    before = {*threading.enumerate()}
    _, transitions = random_transitions(RandomCase(seed=3, rows=1000, actions=6))
    coefficients = LossCoefficients(clip_range=0.2, clip_range_vf=0.0, ent_coef=0.01)
    shape = RolloutShape(1, 1, features=1, actions=6, masked=False)
    learner = MlpLearner(PpoConfig(threads=3, hidden=(8,)), shape, seed=4)
    learner.step(transitions, np.arange(1000), coefficients, 1e-3)
    assert {*threading.enumerate()} - before
    learner.close()

    assert {*threading.enumerate()} - before == set()

"""PPO loss and its native gradient."""

from math import log

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cagepool import _core
from cagepool.train.learner import LossCoefficients, LossTerms, Transitions
from cagepool.train.loss import LossTargets, loss_terms, ppo_loss
from cagepool.types import Int64s
from tests.train.random_transitions import LossInputs, RandomCase, random_transitions

CASES = st.builds(
    RandomCase,
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 20),
    actions=st.integers(1, 40),
    scale=st.sampled_from([0.0, 1.0, 5.0]),
    policy_change=st.sampled_from([0.0, 0.05, 0.5, 2.0]),
    masked=st.booleans(),
)
COEFFICIENTS = st.builds(
    LossCoefficients,
    clip_range=st.sampled_from([0.01, 0.2, 0.9]),
    clip_range_vf=st.sampled_from([0.0, 0.1, 1.0]),
    ent_coef=st.sampled_from([0.0, 0.01, 1.0]),
)


def two_transitions() -> tuple[LossInputs, Transitions]:
    """Action probabilities 1/4 and 3/4 in both rows; the probability ratios are 1 and 2."""
    logits = torch.tensor([[0.0, log(3)], [0.0, log(3)]])
    values = torch.tensor([3.0, 1.0])
    transitions = Transitions(
        features=np.zeros((2, 1), np.float32),
        action_masks=None,
        actions=np.array([1, 0]),
        log_probs=np.array([log(3 / 4), log(1 / 8)], np.float32),
        advantages=np.array([2, 1], np.float32),
        values=np.array([2, 2], np.float32),
        returns=np.array([1, 1], np.float32),
    )
    return LossInputs(logits, values), transitions


def test_the_gradient_equals_a_calculation_by_hand() -> None:
    outputs, transitions = two_transitions()
    coefficients = LossCoefficients(clip_range=0.2, clip_range_vf=0.5, ent_coef=0.1)

    gradient, terms = native_gradient(outputs, transitions, coefficients)

    # d(-ratio A)/dlogit_k = -ratio A (1[k chosen] - p_k): -2 (-1/4, 1/4) in the first row; in the
    # second the ratio exceeds 1.2 and the advantage is positive, so the gradient is 0.
    # H = ln 4 - 3/4 ln 3, and d(-H)/dlogit_k = p_k (ln p_k + H) = (-3/16 ln 3, 3/16 ln 3) in both.
    # All is divided by the number of rows.
    entropy_gradient = 0.1 * 3 / 16 * log(3)
    expected = (
        np.array(
            [
                [0.5 - entropy_gradient, -0.5 + entropy_gradient],
                [-entropy_gradient, entropy_gradient],
            ]
        )
        / 2
    )
    np.testing.assert_allclose(gradient.logits.numpy(), expected, rtol=1e-5)
    # First value: clipped to 2.5, an error of 1.5; the unclipped error, 2, is larger and counts.
    # Second value: the unclipped error is 0; clipped to 1.5, it is 0.5 and counts, with gradient 0.
    np.testing.assert_allclose(gradient.values.numpy(), [2 / 2, 0 / 2])
    by_hand = LossTerms(
        policy=(-2 - 1.2) / 2,
        value=(2**2 / 2 + 0.5**2 / 2) / 2,
        entropy=log(4) - 3 / 4 * log(3),
        kl=(0 + (2 - 1 - log(2))) / 2,
        clip_fraction=1 / 2,
    )
    assert terms == pytest.approx(by_hand, rel=1e-6)


@given(case=CASES, coefficients=COEFFICIENTS)
def test_the_native_gradient_equals_autograd(
    case: RandomCase, coefficients: LossCoefficients
) -> None:
    check_against_autograd(case, coefficients)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("scale", [60.0, 1e3, 1e6])
def test_the_native_gradient_equals_autograd_for_extreme_logits(scale: float, masked: bool) -> None:
    case = RandomCase(seed=1, rows=50, actions=9, scale=scale, policy_change=0.3, masked=masked)
    check_against_autograd(case, LossCoefficients(clip_range=0.2, clip_range_vf=0.2, ent_coef=0.01))


@given(case=CASES, coefficients=COEFFICIENTS, data=st.data())
def test_the_parts_of_a_minibatch_add_up_in_any_order(
    case: RandomCase, coefficients: LossCoefficients, data: st.DataObject
) -> None:
    outputs, transitions = random_transitions(case)
    whole, whole_terms = native_gradient(outputs, transitions, coefficients)
    shuffled = np.array(data.draw(st.permutations(range(case.rows))))
    cut = data.draw(st.integers(0, case.rows))
    terms = []
    for rows in (shuffled[:cut], shuffled[cut:]):
        part_outputs = LossInputs(outputs.logits[rows], outputs.values[rows])
        gradient = LossInputs(*map(torch.empty_like, part_outputs))
        terms.append(write_gradient(part_outputs, transitions, rows, coefficients, gradient))
        assert torch.equal(gradient.logits, whole.logits[rows])
        assert torch.equal(gradient.values, whole.values[rows])
    assert np.sum(terms, axis=0).tolist() == pytest.approx([*whole_terms])


def native_gradient(
    outputs: LossInputs, transitions: Transitions, coefficients: LossCoefficients
) -> tuple[LossInputs, LossTerms]:
    """Gradient and loss terms of a minibatch of all transitions, in order."""
    gradient = LossInputs(*map(torch.empty_like, outputs))
    rows = np.arange(len(transitions.actions))
    return gradient, write_gradient(outputs, transitions, rows, coefficients, gradient)


def write_gradient(
    outputs: LossInputs,
    transitions: Transitions,
    rows: Int64s,
    coefficients: LossCoefficients,
    gradient: LossInputs,
) -> LossTerms:
    """Write the gradient of the loss of all transitions by the outputs for some of the rows."""
    terms = _core.ppo_loss_gradient(
        logits=outputs.logits.numpy(),
        values=outputs.values.numpy(),
        rows=rows,
        minibatch_size=len(transitions.actions),
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


def check_against_autograd(case: RandomCase, coefficients: LossCoefficients) -> None:
    outputs, transitions = random_transitions(case)
    gradient, terms = native_gradient(outputs, transitions, coefficients)
    leaves = LossInputs(*(output.clone().requires_grad_() for output in outputs))
    targets = LossTargets.from_transitions(transitions, torch.device("cpu"))
    loss, expected_terms = ppo_loss(*leaves, targets, coefficients)
    loss.backward()  # type: ignore[no-untyped-call] # of torch

    for ours, leaf in zip(gradient, leaves, strict=True):
        assert leaf.grad is not None
        # Single precision: ratios and entropies lose some of their seven digits.
        np.testing.assert_allclose(ours.numpy(), leaf.grad.numpy(), rtol=1e-4, atol=2e-6)
    assert terms == pytest.approx(loss_terms(expected_terms), rel=1e-4, abs=2e-6)

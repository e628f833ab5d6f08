"""The loss of PPO and its native gradient."""

from math import log

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cagepool.train.loss import LossParts, LossRule, Rows, backward, loss
from tests.train.rows import Drawn, drawn_rows

DRAWN = st.builds(
    Drawn,
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 20),
    choices=st.integers(1, 40),
    scale=st.sampled_from([0.0, 1.0, 5.0]),
    moved=st.sampled_from([0.0, 0.05, 0.5, 2.0]),
    masked=st.booleans(),
)
RULES = st.builds(
    LossRule,
    clip=st.sampled_from([0.01, 0.2, 0.9]),
    value_clip=st.sampled_from([0.0, 0.1, 1.0]),
    entropy=st.sampled_from([0.0, 0.01, 1.0]),
)


def two_rows() -> tuple[torch.Tensor, torch.Tensor, Rows]:
    """Both with probabilities 1/4 and 3/4; the first is as collected, the second has moved."""
    logits = torch.tensor([[0.0, log(3)], [0.0, log(3)]], requires_grad=True)
    values = torch.tensor([3.0, 1.0], requires_grad=True)
    rows = Rows(
        inputs=torch.zeros(2, 1),
        masks=None,
        choices=torch.tensor([1, 0]),
        log_probabilities=torch.tensor([log(3 / 4), log(1 / 8)]),  # ratios 1 and 2
        advantages=torch.tensor([2.0, 1.0]),
        values=torch.tensor([2.0, 2.0]),
        returns=torch.tensor([1.0, 1.0]),
    )
    return logits, values, rows


def test_the_gradient_is_that_of_a_calculation_by_hand() -> None:
    logits, values, rows = two_rows()

    parts = backward(logits, values, rows, LossRule(clip=0.2, value_clip=0.5, entropy=0.1))

    # d(-ratio A)/dlogit_k = -ratio A (1[k chosen] - p_k): -2 (-1/4, 1/4) in the first row; in the
    # second the ratio is beyond 1.2 and the advantage positive, so nothing is left to gain.
    # H = ln 4 - 3/4 ln 3, and d(-H)/dlogit_k = p_k (ln p_k + H) = (-3/16 ln 3, 3/16 ln 3) in both.
    # All is divided by the number of rows.
    bend = 0.1 * 3 / 16 * log(3)
    expected = np.array([[0.5 - bend, -0.5 + bend], [-bend, bend]]) / 2
    assert logits.grad is not None
    np.testing.assert_allclose(logits.grad.numpy(), expected, rtol=1e-5)
    # The first value may count as 2.5 at best, an error of 1.5, but the true one, 2, is worse and
    # counts. The second is right, but counts as 1.5, since it may move from 2 by 0.5 at most: it
    # costs 0.5 and moving does not help.
    assert values.grad is not None
    np.testing.assert_allclose(values.grad.numpy(), [2 / 2, 0 / 2])
    by_hand = LossParts(
        policy=(-2 - 1.2) / 2,
        value=(2**2 / 2 + 0.5**2 / 2) / 2,
        entropy=log(4) - 3 / 4 * log(3),
        kl=(0 + (2 - 1 - log(2))) / 2,
        clip_fraction=1 / 2,
    )
    assert parts == pytest.approx(by_hand, rel=1e-6)


@given(drawn=DRAWN, rule=RULES)
def test_the_native_gradient_is_that_of_torch(drawn: Drawn, rule: LossRule) -> None:
    check_gradients(drawn, rule)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("scale", [60.0, 1e3, 1e6])
def test_the_native_gradient_is_that_of_torch_for_extreme_logits(
    scale: float, masked: bool
) -> None:
    drawn = Drawn(seed=1, rows=50, choices=9, scale=scale, moved=0.3, masked=masked)
    check_gradients(drawn, LossRule(clip=0.2, value_clip=0.2, entropy=0.01))


def check_gradients(drawn: Drawn, rule: LossRule) -> None:
    logits, values, rows = drawn_rows(drawn)
    parts = backward(logits, values, rows, rule)
    twin_logits, twin_values, _ = drawn_rows(drawn)
    total, twin_parts = loss(twin_logits, twin_values, rows, rule)
    total.backward()  # type: ignore[no-untyped-call] # of torch

    for ours, theirs in ((logits.grad, twin_logits.grad), (values.grad, twin_values.grad)):
        assert ours is not None
        assert theirs is not None
        # Single precision: ratios and entropies lose some of their seven digits.
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=2e-6)
    assert parts == pytest.approx(twin_parts, rel=1e-4, abs=2e-6)

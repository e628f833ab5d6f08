"""The loss of PPO and its native gradient."""

from math import log

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cagepool.train.loss import LossParts, LossRule, Outputs, Part, Rows, loss, sum_of, write_slopes
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


def two_rows() -> tuple[Outputs, Rows]:
    """Both with probabilities 1/4 and 3/4; the first is as collected, the second has moved."""
    logits = torch.tensor([[0.0, log(3)], [0.0, log(3)]])
    values = torch.tensor([3.0, 1.0])
    rows = Rows(
        inputs=torch.zeros(2, 1),
        masks=None,
        choices=np.array([1, 0]),
        log_probabilities=np.array([log(3 / 4), log(1 / 8)], np.float32),  # ratios 1 and 2
        advantages=np.array([2, 1], np.float32),
        values=np.array([2, 2], np.float32),
        returns=np.array([1, 1], np.float32),
    )
    return Outputs(logits, values), rows


def test_the_gradient_is_that_of_a_calculation_by_hand() -> None:
    outputs, rows = two_rows()

    slopes, parts = slopes_of(outputs, rows, LossRule(clip=0.2, value_clip=0.5, entropy=0.1))

    # d(-ratio A)/dlogit_k = -ratio A (1[k chosen] - p_k): -2 (-1/4, 1/4) in the first row; in the
    # second the ratio is beyond 1.2 and the advantage positive, so nothing is left to gain.
    # H = ln 4 - 3/4 ln 3, and d(-H)/dlogit_k = p_k (ln p_k + H) = (-3/16 ln 3, 3/16 ln 3) in both.
    # All is divided by the number of rows.
    bend = 0.1 * 3 / 16 * log(3)
    expected = np.array([[0.5 - bend, -0.5 + bend], [-bend, bend]]) / 2
    np.testing.assert_allclose(slopes.logits.numpy(), expected, rtol=1e-5)
    # The first value may count as 2.5 at best, an error of 1.5, but the true one, 2, is worse and
    # counts. The second is right, but counts as 1.5, since it may move from 2 by 0.5 at most: it
    # costs 0.5 and moving does not help.
    np.testing.assert_allclose(slopes.values.numpy(), [2 / 2, 0 / 2])
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


@given(drawn=DRAWN, rule=RULES, data=st.data())
def test_parts_of_a_minibatch_add_up_in_any_order(
    drawn: Drawn, rule: LossRule, data: st.DataObject
) -> None:
    outputs, rows = drawn_rows(drawn)
    whole, whole_parts = slopes_of(outputs, rows, rule)
    shuffled = torch.tensor(data.draw(st.permutations(range(drawn.rows))))
    cut = data.draw(st.integers(0, drawn.rows))
    parts = []
    for some in (shuffled[:cut], shuffled[cut:]):
        seen = Outputs(outputs.logits[some], outputs.values[some])
        slopes = Outputs(*map(torch.empty_like, seen))
        parts.append(write_slopes(seen, rows, Part(some, drawn.rows), rule, slopes))
        assert torch.equal(slopes.logits, whole.logits[some])
        assert torch.equal(slopes.values, whole.values[some])
    assert sum_of(parts) == pytest.approx(whole_parts)


def slopes_of(outputs: Outputs, rows: Rows, rule: LossRule) -> tuple[Outputs, LossParts]:
    """Of a minibatch of all rows, as they were collected."""
    slopes = Outputs(*map(torch.empty_like, outputs))
    everything = Part(torch.arange(len(rows.choices)), len(rows.choices))
    return slopes, write_slopes(outputs, rows, everything, rule, slopes)


def check_gradients(drawn: Drawn, rule: LossRule) -> None:
    outputs, rows = drawn_rows(drawn)
    slopes, parts = slopes_of(outputs, rows, rule)
    twins = Outputs(*(part.clone().requires_grad_() for part in outputs))
    total, twin_parts = loss(twins, rows, rule)
    total.backward()  # type: ignore[no-untyped-call] # of torch

    for ours, theirs in zip(slopes, twins, strict=True):
        assert theirs.grad is not None
        # Single precision: ratios and entropies lose some of their seven digits.
        np.testing.assert_allclose(ours.numpy(), theirs.grad.numpy(), rtol=1e-4, atol=2e-6)
    assert parts == pytest.approx(twin_parts, rel=1e-4, abs=2e-6)

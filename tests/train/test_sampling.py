"""Native action sampling and the checks of its arguments."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cagepool import _core

ALMOST_1 = 1 - 2**-24  # the largest single-precision number below 1


def sample(
    logits: NDArray[np.float32], masks: NDArray[np.uint8] | None, uniforms: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    actions = np.full(len(logits), -1)
    log_probs = np.zeros(len(logits), np.float32)
    _core.sample_choices(logits, masks, uniforms, actions, log_probs)
    return actions, log_probs


@pytest.mark.parametrize("masked", [True, False])
def test_every_choice_is_sampled_with_its_probability(masked: bool) -> None:
    logits = np.random.default_rng(0).standard_normal(21).astype(np.float32) * 2
    mask = (np.arange(21) % 3 != 1).astype(np.uint8) if masked else np.ones(21, np.uint8)
    weights = np.exp(logits.astype(np.float64)) * mask
    uniforms = ((np.arange(100_000) + 0.5) / 100_000).astype(np.float32)
    rows = len(uniforms)

    masks = np.tile(mask, (rows, 1)) if masked else None
    chosen, _ = sample(np.tile(logits, (rows, 1)), masks, uniforms)

    # With evenly spaced uniforms each count is within 1 of its share, apart from rounding.
    counts = np.bincount(chosen, minlength=21)
    np.testing.assert_allclose(counts, rows * weights / weights.sum(), atol=2)


@given(
    seed=st.integers(0, 2**32 - 1),
    choices=st.integers(1, 40),
    scale=st.sampled_from([0.0, 1.0, 30.0, 1e4]),
    uniform=st.floats(0, 1, width=32, exclude_max=True) | st.just(ALMOST_1),
)
def test_a_sampled_choice_is_allowed_and_has_the_log_probability_of_torch(
    seed: int, choices: int, scale: float, uniform: float
) -> None:
    rng = np.random.default_rng(seed)
    logits = (scale * rng.standard_normal((5, choices))).astype(np.float32)
    masks = (rng.random((5, choices)) < 0.3).astype(np.uint8)
    masks[np.arange(5), rng.integers(choices, size=5)] = 1

    chosen, log_probabilities = sample(logits, masks, np.full(5, uniform, np.float32))

    assert masks[np.arange(5), chosen].all()
    masked = torch.where(torch.from_numpy(masks).bool(), torch.from_numpy(logits), -torch.inf)
    expected = torch.log_softmax(masked, 1).numpy()[np.arange(5), chosen]
    assert np.isfinite(log_probabilities).all()
    # Single precision: differences of logits with seven digits.
    np.testing.assert_allclose(log_probabilities, expected, rtol=1e-5, atol=1e-6 * max(1, scale))


def test_a_choice_of_negligible_probability_is_not_sampled() -> None:
    logits = np.array([[-200.0, 0.0, -200.0]] * 2, np.float32)

    chosen, _ = sample(logits, None, np.array([0, ALMOST_1], np.float32))

    assert chosen.tolist() == [1, 1]


def sample_arguments(**changed: Any) -> dict[str, Any]:
    default = {
        "logits": np.zeros((4, 3), np.float32),
        "masks": np.ones((4, 3), np.uint8),
        "uniforms": np.zeros(4, np.float32),
        "chosen": np.zeros(4, np.int64),
        "log_probabilities": np.zeros(4, np.float32),
    }
    return default | changed


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"masks": np.ones((4, 2), np.uint8)}, "masks must have 3 columns, got 2"),
        ({"logits": np.zeros((4, 0), np.float32), "masks": None}, "at least one choice"),
        ({"uniforms": np.zeros(3, np.float32)}, "uniforms must have 4 rows, got 3"),
        ({"chosen": np.zeros(5, np.int64)}, "chosen must have 4 rows, got 5"),
        ({"log_probabilities": np.zeros(0, np.float32)}, "must have 4 rows, got 0"),
    ],
    ids=["masks", "no choice", "uniforms", "chosen", "log_probabilities"],
)
def test_arrays_of_other_shapes_are_refused(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        _core.sample_choices(**sample_arguments(**changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"logits": np.zeros((4, 3))},
        {"logits": np.zeros((3, 4), np.float32).T},
        {"masks": np.ones((4, 3), np.bool_)},
        {"uniforms": np.zeros(4)},
        {"chosen": np.zeros(4, np.int32)},
    ],
    ids=["float64", "other order", "booleans", "float64 uniforms", "int32"],
)
def test_arrays_of_other_types_are_refused_instead_of_copied(changed: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        _core.sample_choices(**sample_arguments(**changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"masks": np.array([[1, 1, 1]] * 3 + [[0, 0, 0]], np.uint8)},
        {"logits": np.array([[0, 0, 0]] * 3 + [[0, np.nan, 0]], np.float32)},
        {"logits": np.array([[0, 0, 0]] * 3 + [[0, np.inf, 0]], np.float32)},
        {"logits": np.array([[0, 0, 0]] * 3 + [[-np.inf] * 3], np.float32)},
    ],
    ids=["all masked", "nan", "inf", "no weight"],
)
def test_a_row_without_probabilities_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"row 3 has not$"):
        _core.sample_choices(**sample_arguments(**changed))


def test_unaligned_choices_are_refused() -> None:
    unaligned = memoryview(bytearray(33))[1:].cast("q")
    with pytest.raises(TypeError, match=r"^chosen must be an aligned array of type i8 and rank 1"):
        _core.sample_choices(**sample_arguments(chosen=unaligned))


def gradient_arguments(**changed: Any) -> dict[str, Any]:
    row = np.zeros(4, np.float32)
    default: dict[str, Any] = dict.fromkeys(
        ("values", "log_probabilities", "advantages", "old_values", "returns"), row
    )
    default |= {
        "logits": np.zeros((4, 3), np.float32),
        "rows": np.arange(4),
        "minibatch_size": 4,
        "masks": None,
        "chosen": np.zeros(4, np.int64),
        "logits_gradient": np.zeros((4, 3), np.float32),
        "values_gradient": np.zeros(4, np.float32),
        "clip_range": 0.2,
        "clip_range_vf": 0.0,
        "ent_coef": 0.0,
    }
    return default | changed


@pytest.mark.parametrize(
    ("changed", "error", "sentence"),
    [
        ({"chosen": np.array([0, 1, 2, 3])}, IndexError, "must be a column of logits"),
        ({"chosen": np.array([0, 1, 2, -1])}, IndexError, "must be a column of logits"),
        ({"returns": np.zeros(3, np.float32)}, ValueError, "returns must have 4 rows, got 3"),
        ({"rows": np.array([0, 1, 2, 4])}, IndexError, "one of the rollout"),
        ({"rows": np.array([0, 1, 2, -1])}, IndexError, "one of the rollout"),
        ({"rows": np.arange(3)}, ValueError, "rows must have 4 rows, got 3"),
        ({"minibatch_size": 3}, ValueError, "at least the number of rows"),
        ({"masks": np.ones((3, 3), np.uint8)}, ValueError, "masks must have 4 rows, got 3"),
        ({"masks": np.ones((4, 2), np.uint8)}, ValueError, "masks must have 3 columns, got 2"),
        (
            {"logits_gradient": np.zeros((4, 2), np.float32)},
            ValueError,
            "must have 3 columns, got 2",
        ),
        ({"values_gradient": np.zeros(4)}, TypeError, "^values_gradient must be an aligned"),
    ],
    ids=[
        "choice beyond",
        "choice below",
        "returns",
        "row beyond",
        "row below",
        "rows",
        "minibatch",
        "rows of masks",
        "columns of masks",
        "gradient",
        "float64",
    ],
)
def test_invalid_rows_of_a_loss_gradient_are_refused(
    changed: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        _core.ppo_loss_gradient(**gradient_arguments(**changed))

"""The loss of PPO, twice: as PyTorch would have it, and the native slopes that training uses.

Autograd through softmax, gather, entropy and clamps takes most of an update's time; the kernel does
it in one pass over the logits. Tests hold the two equal.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from cagepool import _core
from cagepool.evaluate.policy import MASKED_LOGIT
from cagepool.types import Bytes, Float32s, Int64s


@dataclass(frozen=True)
class Rows:
    """Rows of what was collected."""

    inputs: torch.Tensor  # (rows, inputs)
    masks: Bytes | None  # (rows, choices)
    choices: Int64s  # (rows,), as all that follow
    log_probabilities: Float32s
    advantages: Float32s
    values: Float32s  # as the critic saw it when it was collected
    returns: Float32s


class Outputs(NamedTuple):
    """What the networks say of some rows, or the slopes of the loss by it."""

    logits: torch.Tensor  # (rows, choices)
    values: torch.Tensor  # (rows,)


class Part(NamedTuple):
    """Some rows of a minibatch, by their numbers, and how many the whole has."""

    rows: torch.Tensor
    minibatch: int


class LossParts(NamedTuple):
    """Means over the rows of a minibatch, or some rows' part of them."""

    policy: float
    value: float
    entropy: float
    kl: float
    clip_fraction: float


@dataclass(frozen=True)
class LossRule:
    """What of the loss is a matter of settings."""

    clip: float
    value_clip: float
    entropy: float


def loss(outputs: Outputs, rows: Rows, rule: LossRule) -> tuple[torch.Tensor, LossParts]:
    """The loss, clipped surrogate - entropy bonus + half the squared error of the values."""
    logits, values = outputs
    if rows.masks is not None:
        logits = torch.where(torch.from_numpy(rows.masks).bool(), logits, float(MASKED_LOGIT))
    choices, old, advantages, old_values, returns = map(
        torch.from_numpy,
        (rows.choices, rows.log_probabilities, rows.advantages, rows.values, rows.returns),
    )
    log_probabilities = torch.log_softmax(logits, 1)
    change = log_probabilities.gather(1, choices[:, None])[:, 0] - old
    ratio = change.exp()
    clipped = ratio.clamp(1 - rule.clip, 1 + rule.clip)
    policy = -torch.minimum(ratio * advantages, clipped * advantages).mean()
    entropy = -(log_probabilities.exp() * log_probabilities).sum(1).mean()
    errors = (values - returns) ** 2
    if rule.value_clip:
        moved = (values - old_values).clamp(-rule.value_clip, rule.value_clip)
        errors = torch.maximum(errors, (old_values + moved - returns) ** 2)
    value = errors.mean() / 2
    kl = (ratio - 1 - change).mean()
    clip_fraction = (ratio != clipped).float().mean()
    parts = (part.item() for part in (policy, value, entropy, kl, clip_fraction))
    return policy - rule.entropy * entropy + value, LossParts(*parts)


def write_slopes(
    outputs: Outputs, rows: Rows, part: Part, rule: LossRule, slopes: Outputs
) -> LossParts:
    """Write the slopes of the loss of a minibatch by the outputs for a part of its rows."""
    parts = _core.ppo_loss_gradient(
        logits=outputs.logits.numpy(),
        values=outputs.values.numpy(),
        rows=part.rows.numpy(),
        minibatch_size=part.minibatch,
        masks=rows.masks,
        chosen=rows.choices,
        log_probabilities=rows.log_probabilities,
        advantages=rows.advantages,
        old_values=rows.values,
        returns=rows.returns,
        logits_gradient=slopes.logits.numpy(),
        values_gradient=slopes.values.numpy(),
        clip_range=rule.clip,
        clip_range_vf=rule.value_clip,
        ent_coef=rule.entropy,
    )
    return LossParts(*parts)


def mean_of(parts: list[LossParts]) -> LossParts:
    """The mean of the parts of several minibatches."""
    return LossParts(*np.mean(parts, axis=0).tolist())


def sum_of(parts: list[LossParts]) -> LossParts:
    """Several parts of one minibatch together."""
    return LossParts(*np.sum(parts, axis=0).tolist())

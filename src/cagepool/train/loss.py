"""PPO loss: in PyTorch as the reference, and its native gradient, which training uses.

Autograd through softmax, gather, entropy and clamps takes most of an update's time; the native
kernel computes the gradient in one pass over the logits. Tests compare the two.
"""

from typing import NamedTuple

import torch

from cagepool import _core
from cagepool.evaluate.policy import MASKED_LOGIT
from cagepool.train.learner import LossCoefficients, LossTerms, Transitions
from cagepool.types import Int64s


class NetworkOutputs(NamedTuple):
    """Outputs of actor and critic, or the gradient of the loss by them."""

    logits: torch.Tensor  # (rows, actions)
    values: torch.Tensor  # (rows,)


class MinibatchPart(NamedTuple):
    """Rows of a minibatch that one thread computes."""

    rows: Int64s  # indices of transitions
    minibatch_size: int


def ppo_loss(
    outputs: NetworkOutputs, transitions: Transitions, coefficients: LossCoefficients
) -> tuple[torch.Tensor, LossTerms]:
    """Clipped surrogate loss - entropy bonus + half the squared value error."""
    logits, values = outputs
    if transitions.action_masks is not None:
        allowed = torch.from_numpy(transitions.action_masks).bool()
        logits = torch.where(allowed, logits, float(MASKED_LOGIT))
    actions, old_log_probs, advantages, old_values, returns = map(
        torch.from_numpy,
        (
            transitions.actions,
            transitions.log_probs,
            transitions.advantages,
            transitions.values,
            transitions.returns,
        ),
    )
    all_log_probs = torch.log_softmax(logits, 1)
    log_ratio = all_log_probs.gather(1, actions[:, None])[:, 0] - old_log_probs
    ratio = log_ratio.exp()
    clip_range = coefficients.clip_range
    clipped = ratio.clamp(1 - clip_range, 1 + clip_range)
    policy = -torch.minimum(ratio * advantages, clipped * advantages).mean()
    entropy = -(all_log_probs.exp() * all_log_probs).sum(1).mean()
    errors = (values - returns) ** 2
    if coefficients.clip_range_vf:
        clip_range_vf = coefficients.clip_range_vf
        change = (values - old_values).clamp(-clip_range_vf, clip_range_vf)
        errors = torch.maximum(errors, (old_values + change - returns) ** 2)
    value = errors.mean() / 2
    kl = (ratio - 1 - log_ratio).mean()
    clip_fraction = (ratio != clipped).float().mean()
    terms = (term.item() for term in (policy, value, entropy, kl, clip_fraction))
    return policy - coefficients.ent_coef * entropy + value, LossTerms(*terms)


def write_loss_gradient(
    outputs: NetworkOutputs,
    transitions: Transitions,
    part: MinibatchPart,
    coefficients: LossCoefficients,
    gradient: NetworkOutputs,
) -> LossTerms:
    """Write the gradient of a minibatch's loss by the outputs for a part of its rows."""
    terms = _core.ppo_loss_gradient(
        logits=outputs.logits.numpy(),
        values=outputs.values.numpy(),
        rows=part.rows,
        minibatch_size=part.minibatch_size,
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

"""PPO loss in PyTorch: the reference, and what autograd differentiates.

The native learner computes the same loss and its gradient in C++ (cpp/policy/ppo_loss.cpp); tests
compare the two.
"""

from typing import NamedTuple

import torch

from cagepool.policy.native import MASKED_LOGIT
from cagepool.train.learner import LossCoefficients, LossTerms, Transitions


class LossTargets(NamedTuple):
    """What the loss needs of transitions, one row each."""

    actions: torch.Tensor
    log_probs: torch.Tensor
    advantages: torch.Tensor
    values: torch.Tensor  # by the critic before the update
    returns: torch.Tensor
    action_masks: torch.Tensor | None  # (rows, actions), true where allowed

    @classmethod
    def from_transitions(cls, transitions: Transitions, device: torch.device) -> "LossTargets":
        """Copy transitions to a device; on the CPU, share their memory."""
        masks = transitions.action_masks
        return cls(
            torch.from_numpy(transitions.actions).to(device),
            torch.from_numpy(transitions.log_probs).to(device),
            torch.from_numpy(transitions.advantages).to(device),
            torch.from_numpy(transitions.values).to(device),
            torch.from_numpy(transitions.returns).to(device),
            None if masks is None else torch.from_numpy(masks).to(device).bool(),
        )

    def rows(self, rows: torch.Tensor) -> "LossTargets":
        """Some of the rows."""
        return LossTargets(*(None if array is None else array[rows] for array in self))  # type: ignore[arg-type]


def ppo_loss(
    logits: torch.Tensor,
    values: torch.Tensor,
    targets: LossTargets,
    coefficients: LossCoefficients,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Clipped surrogate loss - entropy bonus + half the squared value error.

    Args:
        logits: (rows, actions), before masking.
        values: (rows,).
        targets: Transitions, in the same order.
        coefficients: Weights and clip ranges.

    Returns:
        The loss, and the values of `LossTerms`, (5,).
    """
    if targets.action_masks is not None:
        logits = torch.where(targets.action_masks, logits, MASKED_LOGIT)
    all_log_probs = torch.log_softmax(logits, 1)
    log_ratio = all_log_probs.gather(1, targets.actions[:, None])[:, 0] - targets.log_probs
    ratio = log_ratio.exp()
    clip_range = coefficients.clip_range
    clipped = ratio.clamp(1 - clip_range, 1 + clip_range)
    policy = -torch.minimum(ratio * targets.advantages, clipped * targets.advantages).mean()
    entropy = -(all_log_probs.exp() * all_log_probs).sum(1).mean()
    errors = (values - targets.returns) ** 2
    if coefficients.clip_range_vf:
        clip_range_vf = coefficients.clip_range_vf
        change = (values - targets.values).clamp(-clip_range_vf, clip_range_vf)
        errors = torch.maximum(errors, (targets.values + change - targets.returns) ** 2)
    value = errors.mean() / 2
    kl = (ratio - 1 - log_ratio).mean()
    clip_fraction = (ratio != clipped).float().mean()
    terms = torch.stack([policy, value, entropy, kl, clip_fraction]).detach()
    return policy - coefficients.ent_coef * entropy + value, terms


def loss_terms(terms: torch.Tensor) -> LossTerms:
    """The terms that `ppo_loss` returns, as numbers."""
    return LossTerms(*terms.tolist())

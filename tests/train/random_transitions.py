"""Random transitions of a rollout and network outputs for them."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from cagepool.train.learner import Transitions


@dataclass(frozen=True)
class RandomCase:
    """Parameters of random transitions."""

    seed: int
    rows: int
    actions: int
    scale: float = 1.0  # of the logits
    policy_change: float = 0.5  # of the log probabilities since the rollout
    masked: bool = False


class LossInputs(NamedTuple):
    """Outputs of actor and critic, or the gradient of the loss by them."""

    logits: torch.Tensor  # (rows, actions)
    values: torch.Tensor  # (rows,)


def random_transitions(case: RandomCase) -> tuple[LossInputs, Transitions]:
    rng = np.random.default_rng(case.seed)
    shape = (case.rows, case.actions)
    logits = (case.scale * rng.standard_normal(shape)).astype(np.float32)
    actions = rng.integers(case.actions, size=case.rows)
    masks = (rng.random(shape) < 0.5).astype(np.uint8)
    masks[np.arange(case.rows), actions] = 1
    allowed = np.where(masks, logits, -np.inf) if case.masked else logits
    log_probs = torch.log_softmax(torch.from_numpy(allowed.astype(np.float32)), 1).numpy()
    old_log_probs = log_probs[np.arange(case.rows), actions]
    change = case.policy_change * rng.standard_normal(case.rows).astype(np.float32)
    old_log_probs = old_log_probs + change
    advantages, values, old_values, returns = (
        rng.standard_normal(case.rows).astype(np.float32) for _ in range(4)
    )
    transitions = Transitions(
        features=np.zeros((case.rows, 1), np.float32),
        action_masks=masks if case.masked else None,
        actions=actions,
        log_probs=old_log_probs,
        advantages=advantages,
        values=old_values,
        returns=returns,
    )
    return LossInputs(torch.from_numpy(logits), torch.from_numpy(values)), transitions

"""Rows of choices as a learner has them, drawn at random."""

from dataclasses import dataclass

import numpy as np
import torch

from cagepool.train.loss import Outputs, Rows


@dataclass(frozen=True)
class Drawn:
    """What a minibatch may look like; a seed decides the numbers."""

    seed: int
    rows: int
    choices: int
    scale: float = 1.0  # of the logits
    moved: float = 0.5  # of the log probabilities since they were collected
    masked: bool = False


def drawn_rows(drawn: Drawn) -> tuple[Outputs, Rows]:
    """What the networks say of rows, and what was collected."""
    rng = np.random.default_rng(drawn.seed)
    shape = (drawn.rows, drawn.choices)
    logits = (drawn.scale * rng.standard_normal(shape)).astype(np.float32)
    choices = rng.integers(drawn.choices, size=drawn.rows)
    masks = (rng.random(shape) < 0.5).astype(np.uint8)
    masks[np.arange(drawn.rows), choices] = 1
    allowed = np.where(masks, logits, -np.inf) if drawn.masked else logits
    log_probabilities = torch.log_softmax(torch.from_numpy(allowed.astype(np.float32)), 1).numpy()
    old = log_probabilities[np.arange(drawn.rows), choices]
    old = old + drawn.moved * rng.standard_normal(drawn.rows).astype(np.float32)
    advantages, values, old_values, returns = (
        rng.standard_normal(drawn.rows).astype(np.float32) for _ in range(4)
    )
    rows = Rows(
        inputs=torch.zeros(drawn.rows, 1),
        masks=masks if drawn.masked else None,
        choices=choices,
        log_probabilities=old,
        advantages=advantages,
        values=old_values,
        returns=returns,
    )
    return Outputs(torch.from_numpy(logits), torch.from_numpy(values)), rows

"""How good the greedy policy is, on games that it is not trained on."""

from typing import NamedTuple

import numpy as np
import torch

from cagepool.evaluate.policy import Policy, PolicyDefender
from cagepool.evaluate.rollout import Trial, episode_totals
from cagepool.sim.names import red_class_names
from cagepool.train.config import TrainConfig
from cagepool.train.networks import Networks
from cagepool.types import Float32s

CHECK_SEED = 0xC4EC  # of the games of all checks: apart from training, and from evaluation


class Check(NamedTuple):
    """Score of a policy; the higher the better."""

    score: float
    standard_error: float


class _Actor(Policy):
    """The policy that is being trained, computed by PyTorch with the threads that it may use.

    NumPy would take all cores, and wait for them by spinning.
    """

    def __init__(self, networks: Networks, config: TrainConfig) -> None:
        super().__init__(networks.arrays(), config.as_dict())
        self._networks = networks

    def forward(self, rows: Float32s) -> Float32s:
        with torch.inference_mode():
            return self._networks.logits(torch.from_numpy(rows)).numpy()


def check(config: TrainConfig, networks: Networks) -> Check:
    """Mean total reward of greedy games, averaged over the reds and the official lengths."""
    trial = Trial(
        episodes=max(2, config.run.n_eval_episodes),
        max_steps=config.env.max_steps,
        edition=config.env.edition,
        green=config.env.green,
        seed=CHECK_SEED,
    )
    defender = PolicyDefender(_Actor(networks, config))
    totals = [
        episode_totals(defender, trial, red).mean(1)
        for red in red_class_names(config.env.red_agent)
    ]
    means = np.mean(totals, axis=0)
    return Check(float(means.mean()), float(means.std(ddof=1) / np.sqrt(len(means))))


def check_of_returns(returns: list[float]) -> Check:
    """The same of an environment that can't be played apart: what was returned in training."""
    error = np.std(returns, ddof=1) / np.sqrt(len(returns)) if len(returns) > 1 else float("nan")
    return Check(float(np.mean(returns)) if returns else float("nan"), float(error))

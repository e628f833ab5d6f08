"""How good the greedy policy is, on games that it is not trained on."""

from typing import NamedTuple

import numpy as np

from cagepool.evaluate.play import Trial, episode_totals
from cagepool.evaluate.policy import Policy, PolicyDefender
from cagepool.runs import Arrays
from cagepool.sim import reds
from cagepool.train.config import TrainConfig

CHECK_SEED = 0xC4EC  # of the games of all checks: apart from training, and from evaluation


class Check(NamedTuple):
    """Score of a policy; the higher the better."""

    score: float
    standard_error: float


def check(config: TrainConfig, arrays: Arrays) -> Check:
    """Mean total reward of greedy games, averaged over the reds and the official lengths."""
    trial = Trial(
        episodes=max(2, config.check_episodes),
        max_steps=config.max_steps,
        edition=config.edition,
        green=config.green,
        seed=CHECK_SEED,
    )
    defender = PolicyDefender(Policy(arrays, config.as_dict()))
    totals = [
        episode_totals(defender, trial, red).mean(1) for red in reds.members(config.red_agent)
    ]
    means = np.mean(totals, axis=0)
    return Check(float(means.mean()), float(means.std(ddof=1) / np.sqrt(len(means))))


def check_of_returns(returns: list[float]) -> Check:
    """The same of an environment that can't be played apart: what was returned in training."""
    error = np.std(returns, ddof=1) / np.sqrt(len(returns)) if len(returns) > 1 else float("nan")
    return Check(float(np.mean(returns)) if returns else float("nan"), float(error))

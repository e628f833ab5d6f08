"""The settings of a search."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from cagepool.sim.orders import ALL_ORDERS
from cagepool.train.config import TrainConfig

METHODS = ("gp-ucb", "random", "round-robin", "universal")
# Settings of a training that a search decides itself, and what they must be.
DECIDED: Mapping[str, Any] = {
    "order": None, "start_from": None, "universal": False, "overlap": False
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SearchConfig(TrainConfig):
    """Everything that decides a search; `total_episodes` is its whole budget."""

    total_episodes: int = 100_000
    """Training episodes of all orders together, which are never exceeded."""
    red_agent: str = "B_lineAgent"
    """B_lineAgent, RedMeanderAgent, SleepAgent (or b_line, meander, sleep), mix: one of the three
    drawn for each episode, or several of them joined by +."""
    checks: int = 0
    """How often, spread over each training, the greedy policy is scored on other seeds."""
    method: str = "gp-ucb"
    """How orders are chosen: gp-ucb, random, round-robin; or universal, one policy for all."""
    max_episodes_per_order: int = 5000
    """Episodes after which training to an order ends at the latest."""
    gp_beta: float = 2.0
    """Weight of the deviation in the upper confidence bound."""
    inherit: bool = True
    """Start from the policy of the nearest order trained so far, optimiser included."""

    def __post_init__(self) -> None:
        """Check what a search needs beside what a training does."""
        super().__post_init__()
        if self.method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}; got {self.method!r}")
        if self.max_episodes_per_order < 1:
            raise ValueError(
                f"max_episodes_per_order must be at least 1, got {self.max_episodes_per_order}"
            )
        if not 0 <= self.gp_beta < float("inf"):
            raise ValueError(f"gp_beta must be at least 0, got {self.gp_beta}")
        if not self.is_native:
            raise ValueError(f"a search plays native games, got {self.env} with {self.backend}")
        for name, needed in DECIDED.items():
            if getattr(self, name) != needed:
                raise ValueError(f"a search decides about {name} itself, got {getattr(self, name)}")

    def training(self, **changes: Any) -> TrainConfig:
        """The settings of one training."""
        shared = {field.name: getattr(self, field.name) for field in fields(TrainConfig)}
        return TrainConfig(**shared | changes)

    def training_to(self, order: int, iteration: int, **changes: Any) -> TrainConfig:
        """The settings of the training to an order in an iteration."""
        seed = int(np.random.SeedSequence([self.seed, iteration]).generate_state(1)[0])
        # An actor of Ray trains to an order as this process would.
        alone = {"backend": "auto", "ray_actors": 1} if self.backend == "ray" else {}
        return self.training(order=ALL_ORDERS[order], seed=seed, **alone, **changes)

    def universal_training(self) -> TrainConfig:
        """The settings of the one training to all orders."""
        return self.training(universal=True, order_input=True, gate=False)

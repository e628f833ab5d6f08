"""Settings of a search."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from cagepool.sim.orders import ALL_ORDERS
from cagepool.train.config import TrainConfig

METHODS = ("gp-ucb", "random", "round-robin", "universal")
# Training settings that the search itself sets, and their only allowed values.
RESERVED_SETTINGS: Mapping[str, Any] = {
    "order": None, "start_from": None, "universal": False, "overlap": False
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SearchConfig(TrainConfig):
    """Settings of a search and of its trainings; `total_episodes` is the budget of the search."""

    total_episodes: int = 100_000
    """Budget: training episodes of all orders together. It is never exceeded."""
    red_agent: str = "B_lineAgent"
    """B_lineAgent, RedMeanderAgent, SleepAgent (or b_line, meander, sleep), mix: one of the three
    drawn for each episode, or several of them joined by +."""
    checks: int = 0
    """How often, spread over each training, the greedy policy is scored on other seeds."""
    method: str = "gp-ucb"
    """Strategy that chooses the next order: gp-ucb, random or round-robin. universal trains one
    order-conditioned policy instead and evaluates it on all orders."""
    max_episodes_per_order: int = 5000
    """Maximum training episodes per order."""
    gp_beta: float = 2.0
    """Weight of the standard deviation in the upper confidence bound (UCB)."""
    inherit: bool = True
    """Initialize each training with policy and optimizer state of the nearest trained order (by
    Kendall tau distance). When off, every training starts from random weights."""

    def __post_init__(self) -> None:
        """Check the settings of the search and of its trainings."""
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
        for name, needed in RESERVED_SETTINGS.items():
            if getattr(self, name) != needed:
                raise ValueError(f"a search decides about {name} itself, got {getattr(self, name)}")

    def _training_config(self, **changes: Any) -> TrainConfig:
        shared = {field.name: getattr(self, field.name) for field in fields(TrainConfig)}
        return TrainConfig(**shared | changes)

    def training_config(self, order: int, iteration: int, **changes: Any) -> TrainConfig:
        """Settings of the training to an order in an iteration."""
        seed = int(np.random.SeedSequence([self.seed, iteration]).generate_state(1)[0])
        # A training in a Ray actor has the same settings, and results, as a local one.
        local = {"backend": "auto", "ray_actors": 1} if self.backend == "ray" else {}
        return self._training_config(order=ALL_ORDERS[order], seed=seed, **local, **changes)

    def universal_training_config(self) -> TrainConfig:
        """Settings of the training of one policy for all orders."""
        return self._training_config(universal=True, order_input=True, gate=False)

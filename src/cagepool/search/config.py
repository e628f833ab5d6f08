"""Settings of a search: those of its trainings, and the group `search`; and its listener."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from cagepool.experiments.listener import Listener
from cagepool.sim.compliance import ALL_ORDERS
from cagepool.train.config import EnvConfig, RunConfig, TrainConfig

if TYPE_CHECKING:  # loads scikit-learn
    from cagepool.search.records import Decision
    from cagepool.search.strategy import Posterior

Method: TypeAlias = Literal["gp-ucb", "random", "round-robin", "universal"]
METHODS = get_args(Method)


@dataclass(frozen=True, kw_only=True)
class StrategyConfig:
    """Search strategy: which order is trained next, and for how long."""

    method: Method = "gp-ucb"
    """Search strategy. universal: one order-conditioned policy that is evaluated on all orders."""
    max_episodes_per_order: int = 5000
    """Maximum training episodes per order."""
    gp_beta: float = 2.0
    """Weight of the standard deviation in the upper confidence bound (UCB)."""
    jobs: int = 1
    """Trainings at a time, each in a process with one thread. 1: one after the other."""
    inherit: bool = True
    """Start each training from the nearest trained order's weights. Off: from random weights."""

    def __post_init__(self) -> None:
        """Check the settings that can be wrong on their own."""
        if self.method not in METHODS:
            raise ValueError(
                f"search.method must be one of {', '.join(METHODS)}; got {self.method!r}"
            )
        for name in ("max_episodes_per_order", "jobs"):
            if getattr(self, name) < 1:
                raise ValueError(f"search.{name} must be at least 1, got {getattr(self, name)}")
        if not 0 <= self.gp_beta < float("inf"):
            raise ValueError(f"search.gp_beta must be at least 0, got {self.gp_beta}")


@dataclass(frozen=True, kw_only=True)
class SearchConfig(TrainConfig):
    """Settings of a search and of its trainings; `run.total_episodes` is the search budget."""

    env: EnvConfig = field(default_factory=lambda: EnvConfig(red_agent="B_lineAgent"))
    run: RunConfig = field(default_factory=lambda: RunConfig(n_evals=0))
    search: StrategyConfig = field(default_factory=StrategyConfig)

    def __post_init__(self) -> None:
        """Check the settings of a search beside those of a training."""
        super().__post_init__()
        if not self.env.is_native:
            given = f"got {self.env.id} with {self.env.backend}"
            raise ValueError(f"a search plays native games, {given}")
        if self.run.total_episodes < min(self.env.n_envs, self.search.max_episodes_per_order):
            raise ValueError(
                "run.total_episodes must be at least env.n_envs or search.max_episodes_per_order; "
                f"got {self.run.total_episodes}, which is not enough for one training"
            )
        if self.search.jobs > 1 and (self.is_on_ray or self.search.method == "universal"):
            other = "env.ray_actors" if self.is_on_ray else "one policy for all orders"
            raise ValueError(f"search.jobs must be 1 with {other}, got {self.search.jobs}")
        decided = {
            "order.order": self.order.order,
            "order.universal": self.order.universal,
            "run.start_from": self.run.start_from,
            "ppo.overlap": self.ppo.overlap,
        }
        for name, value in decided.items():
            if value:
                raise ValueError(f"a search sets {name} itself, got {value}")

    @property
    def is_on_ray(self) -> bool:
        """Whether the trainings are tasks of a Ray cluster."""
        return self.env.backend == "ray"

    @property
    def jobs(self) -> int:
        """Trainings at a time."""
        return self.env.ray_actors if self.is_on_ray else self.search.jobs

    def _training_config(self, **changes: Any) -> TrainConfig:
        shared = TrainConfig(
            env=self.env, ppo=self.ppo, features=self.features, order=self.order, run=self.run
        )
        return shared.with_settings(**changes)

    def training_config(self, order: int, iteration: int, **changes: Any) -> TrainConfig:
        """Settings of the training to an order in an iteration."""
        seed = int(np.random.SeedSequence([self.run.seed, iteration]).generate_state(1)[0])
        # A training in a Ray task has the same settings, and results, as a local one.
        local: dict[str, Any] = {"backend": "auto", "ray_actors": 1} if self.is_on_ray else {}
        if self.search.jobs > 1:
            local["threads"] = 1
        return self._training_config(order=ALL_ORDERS[order], seed=seed, **local, **changes)

    def universal_training_config(self) -> TrainConfig:
        """Settings of the training of one policy for all orders."""
        return self._training_config(universal=True, order_input=True, early_stopping=False)


class SearchListener(Listener):
    """Receives the progress of a search."""

    def on_decision(
        self, decision: "Decision", predicted: "Posterior | None", spent: int, /
    ) -> None:
        """A training starts, or resumes after an interruption, when `spent` episodes are played."""

    def on_result(self, decision: "Decision", /) -> None:
        """A training has ended; the decision has its result."""

"""Evaluation of the policy during and after training on seeds of its own, and early stopping."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from cagepool._machine import usable_cores
from cagepool.evaluate.rollout import (
    Trial,
    episode_totals,
    game_seeds,
    play_steps,
    spread_evenly,
)
from cagepool.evaluate.statistics import mean_score
from cagepool.policy import Defender, Policy
from cagepool.runs.schema import Count, OrderScore, Outcome
from cagepool.sim import Batch, BatchConfig
from cagepool.sim.compliance import compliance_summary
from cagepool.sim.names import red_class_names
from cagepool.train.config import OrderConfig, TrainConfig
from cagepool.types import Arrays, Bytes, Float64s, Int64s

# Seeds of the evaluation games; training and `cagepool evaluate` use others.
PERIODIC_SEED = 0xC4EC
ORDER_SEED = 0x0DE5
ORDERS_PER_BATCH = 20


class PeriodicScore(NamedTuple):
    """Result of a periodic evaluation; higher is better."""

    score: float  # mean over red agents and official lengths: selects the best policy
    standard_error: float
    return_mean: float  # over red agents, of whole episodes, as returns of training episodes are
    return_error: float


def evaluate_weights(config: TrainConfig, weights: Arrays) -> PeriodicScore:
    """Score and mean return of greedy episodes on seeds that training does not use."""
    episodes, policy = config.run.n_eval_episodes, training_policy(weights, config)
    trial = Trial(
        episodes=max(2, episodes),
        max_steps=config.env.max_steps,
        edition=config.env.edition,
        green=config.env.green,
        seed=PERIODIC_SEED,
        scenario=spread_evenly(config.game.scenarios, episodes),
        layout=policy.layout,
    )
    totals = [episode_totals(policy, trial, red) for red in red_class_names(config.env.red_agent)]
    scores = np.mean([by_length.mean(1) for by_length in totals], axis=0)
    returns = np.mean([by_length[:, -1] for by_length in totals], axis=0)
    return PeriodicScore(*_mean_and_error(scores), *_mean_and_error(returns))


def training_policy(weights: Arrays, config: TrainConfig) -> Policy:
    """The policy with the weights of a learner."""
    threads = min(config.ppo.threads, usable_cores())
    return Policy(weights, config.as_dict(), threads=threads)


def score_of_returns(returns: list[float]) -> PeriodicScore:
    """Score from training episodes, for environments that cannot be evaluated separately."""
    mean = float(np.mean(returns)) if returns else float("nan")
    error = _mean_and_error(np.array(returns))[1] if len(returns) > 1 else float("nan")
    return PeriodicScore(mean, error, mean, error)


def _mean_and_error(values: Float64s) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def evaluate_orders(
    policy: Policy, config: TrainConfig, orders: Sequence[str], episodes: int
) -> list[OrderScore]:
    """Evaluate a policy on each order, with the same games for all orders.

    With several red agents, each plays `episodes` games and the scores are averaged.
    """
    batches = (
        orders[first : first + ORDERS_PER_BATCH]
        for first in range(0, len(orders), ORDERS_PER_BATCH)
    )
    return [
        score for batch in batches for score in _evaluate_batch(policy, config, batch, episodes)
    ]


class _OrderDefender(Defender):
    """A policy that sees the order of each game, if it has that feature."""

    def __init__(self, policy: Policy, order_numbers: Bytes) -> None:
        self._policy = policy
        self._order_numbers = order_numbers
        self.act = policy.act  # type: ignore[method-assign]

    def begin(self, games: Any) -> None:
        self._policy.begin(games)
        self._policy.set_orders(self._order_numbers)


def _evaluate_batch(
    policy: Policy, config: TrainConfig, orders: Sequence[str], episodes: int
) -> list[OrderScore]:
    by_red = [
        _play_orders(policy, config, red, orders, episodes)
        for red in red_class_names(config.env.red_agent)
    ]
    return [
        _order_score(
            np.mean([totals[number] for totals, _ in by_red], axis=0),
            np.concatenate([counters[number] for _, counters in by_red]),
            config,
        )
        for number in range(len(orders))
    ]


def _play_orders(
    policy: Policy, config: TrainConfig, red: str, orders: Sequence[str], episodes: int
) -> tuple[Float64s, Int64s]:
    """Total rewards, (order, episode), and counters, (order, episode, COUNTER_COUNT)."""
    trial = Trial(episodes=episodes, max_steps=config.env.max_steps, seed=ORDER_SEED)
    order_per_game = [order for order in orders for _ in range(episodes)]
    game = BatchConfig.of(config.game, red=red, order=order_per_game, autoreset="disabled")
    batch = Batch(len(order_per_game), replace(game, alignment=0.0))
    batch.reset(np.tile(game_seeds(trial, red), len(orders)))
    defender = _OrderDefender(policy, batch.orders)
    ((_, totals),) = deque(play_steps(defender, trial, batch), maxlen=1)
    shape = (len(orders), episodes)
    return totals.reshape(shape), batch.counters.reshape(*shape, -1).astype(np.int64)


def _order_score(totals: Float64s, counters: Int64s, config: TrainConfig) -> OrderScore:
    score = mean_score(totals)
    summary = compliance_summary(counters, config.order.definition)
    shares: dict[str, Any] = summary.as_dict()
    return OrderScore(
        mean=score.mean,
        standard_error=score.standard_error,
        episodes=len(totals),
        **shares,
        passes=passes(summary.compliance, summary.decisions, config.order),
    )


MIN_RISE = 0.01  # of compliance, that counts as progress


def passes(compliance: float, decisions: float, config: OrderConfig) -> bool:
    """Whether compliance (nan: undefined), with that many decisions per episode, passes.

    A policy that fixes once per episode, at the right moment, makes one decision per episode and
    must not pass: the decisions must exceed `min_decisions`, not equal it.
    """
    return compliance >= config.compliance_threshold and decisions > config.min_decisions


@dataclass
class EarlyStopping:
    """Stops a training when compliance passes the threshold or no longer rises."""

    best: float | None = None  # compliance that the next rise is measured from
    stalled_updates: Count = 0
    outcome: Outcome | None = None
    reason: str = ""

    def update(self, row: Mapping[str, float], config: OrderConfig) -> bool:
        """Take the metrics of an update; returns whether to stop.

        Updates in which no episode ended are ignored.
        """
        if math.isnan(row["return_mean"]):
            return False
        compliance, decisions = row.get("compliance", math.nan), row.get("decisions", 0.0)
        if passes(compliance, decisions, config):
            return self._stop(
                "passed",
                f"compliance {compliance:.3f} is at least {config.compliance_threshold:g}, "
                f"with {decisions:.1f} decisions per episode",
            )
        if compliance >= (-math.inf if self.best is None else self.best + MIN_RISE):
            self.best, self.stalled_updates = compliance, 0
            return False
        self.stalled_updates += 1
        if self.stalled_updates < config.patience:
            return False
        risen = (
            "has been undefined" if self.best is None else f"has not risen above {self.best:.3f}"
        )
        updates = self.stalled_updates
        return self._stop("stalled", f"compliance {risen} by {MIN_RISE:g} for {updates} updates")

    def finish(self, row: Mapping[str, float], *, enabled: bool) -> None:
        """Set the outcome of a training that has played all episodes."""
        if not enabled:
            self._stop("fixed", f"all {row['episodes']:,.0f} episodes are played")
        elif self.outcome is None:
            self._stop("spent", f"{row['episodes']:,.0f} episodes are spent without passing")

    def _stop(self, outcome: Outcome, reason: str) -> bool:
        self.outcome, self.reason = outcome, reason
        return True

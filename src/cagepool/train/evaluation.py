"""Evaluation of the policy during and after training, on seeds that training does not use."""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from cagepool.evaluate.load import make_policy
from cagepool.evaluate.network_scores import spread_evenly
from cagepool.evaluate.policy import MLP, Policy, PolicyDefender
from cagepool.evaluate.rollout import Trial, episode_totals, game_seeds, play_steps
from cagepool.evaluate.statistics import mean_score
from cagepool.runs.schema import OrderScore
from cagepool.sim import Batch, BatchConfig
from cagepool.sim.compliance import compliance_summary
from cagepool.sim.names import red_class_names
from cagepool.train.config import TrainConfig
from cagepool.train.early_stopping import passes
from cagepool.train.native_learner import NativeActor
from cagepool.train.rollout import RolloutShape
from cagepool.types import Arrays, Float32s, Float64s, Int64s

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
    trial = Trial(
        episodes=max(2, config.run.n_eval_episodes),
        max_steps=config.env.max_steps,
        edition=config.env.edition,
        green=config.env.green,
        seed=PERIODIC_SEED,
        scenarios=spread_evenly(config.env.scenarios, config.run.n_eval_episodes),
    )
    policy = training_policy(weights, config)
    trial = replace(trial, layout=policy.layout)
    defender = PolicyDefender(policy)
    totals = [episode_totals(defender, trial, red) for red in red_class_names(config.env.red_agent)]
    scores = np.mean([by_length.mean(1) for by_length in totals], axis=0)
    returns = np.mean([by_length[:, -1] for by_length in totals], axis=0)
    return PeriodicScore(*_mean_and_error(scores), *_mean_and_error(returns))


def training_policy(weights: Arrays, config: TrainConfig) -> Policy:
    """The policy with the weights of a learner."""
    if config.ppo.network == MLP:
        return _NativePolicy(weights, config)
    return make_policy(weights, config.as_dict())


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


class _NativePolicy(Policy):
    """MLP policy in training, computed by the core: NumPy would spin-wait on all cores."""

    def __init__(self, weights: Arrays, config: TrainConfig) -> None:
        super().__init__(weights, config.as_dict())
        shape = RolloutShape(0, 0, *self._expected_sizes(), masked=False)
        self._actor = NativeActor(config.ppo, shape)
        self._actor.load_weights(weights)

    def forward(self, rows: Float32s) -> Float32s:
        return self._actor.logits(rows)


class _OrderDefender(PolicyDefender):
    """Defender whose policy sees the order of each game, if it has that feature."""

    def __init__(self, policy: Policy, order_numbers: Any) -> None:
        super().__init__(policy)
        self._order_numbers = order_numbers

    def begin(self, batch: Any) -> None:
        super().begin(batch)
        self.policy.set_orders(self._order_numbers)


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
    batch = Batch(len(order_per_game), _batch_config(config, red, order_per_game))
    batch.reset(np.tile(game_seeds(trial, red), len(orders)))
    defender = _OrderDefender(policy, batch.orders)
    ((_, totals),) = deque(play_steps(defender, trial, batch), maxlen=1)
    shape = (len(orders), episodes)
    return totals.reshape(shape), batch.counters.reshape(*shape, -1).astype(np.int64)


def _batch_config(config: TrainConfig, red: str, order_per_game: Sequence[str]) -> BatchConfig:
    return BatchConfig(
        red=red,
        edition=config.env.edition,
        green=config.env.green,
        max_steps=config.env.max_steps,
        order=order_per_game,
        knowledge=config.order.knowledge,
        definition=config.order.definition,
        autoreset="disabled",
    )


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

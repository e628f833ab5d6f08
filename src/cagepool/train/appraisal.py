"""How well a policy defends and keeps an order, on games of its own (docs/workflow.md, 4)."""

from collections import deque
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from cagepool import runs
from cagepool.evaluate.policy import Policy, PolicyDefender
from cagepool.evaluate.rollout import Trial, game_seeds, play_steps
from cagepool.evaluate.statistics import mean_score
from cagepool.runs.schema import OrderScore, WorkflowFile
from cagepool.sim import Batch, BatchConfig, orders
from cagepool.sim.compliance import compliance_summary
from cagepool.sim.names import red_class_names
from cagepool.train.config import TrainConfig
from cagepool.train.early_stopping import Gate, passes
from cagepool.types import Float64s, Int64s

SEED = 0x0DE5  # of the games of all appraisals: apart from training, checks and evaluation
ORDERS_AT_ONCE = 20


def appraise(
    policy: Policy, config: TrainConfig, written: Sequence[str], episodes: int
) -> list[OrderScore]:
    """Let a policy play to each of some orders, the same games for all of them.

    Against a mix of reds it plays `episodes` games against each, and the scores are averaged.
    """
    parts = [
        _appraise_some(policy, config, written[first : first + ORDERS_AT_ONCE], episodes)
        for first in range(0, len(written), ORDERS_AT_ONCE)
    ]
    return [one for part in parts for one in part]


def write_outcome(run: runs.Run, config: TrainConfig, gate: Gate, policy: Policy) -> None:
    """Write why training to an order ended, and what came of it, into the run's folder."""
    assert config.order.order is not None
    assert gate.outcome is not None
    (result,) = appraise(policy, config, [config.order.order], config.order.n_eval_episodes)
    workflow = WorkflowFile(
        order=">".join(orders.parse_order(config.order.order)),
        outcome=gate.outcome,
        reason=gate.reason,
        **msgspec.structs.asdict(result),
    )
    runs.write_workflow(run.path, workflow)


def _appraise_some(
    policy: Policy, config: TrainConfig, written: Sequence[str], episodes: int
) -> list[OrderScore]:
    of_reds = [
        _play(policy, config, red, written, episodes)
        for red in red_class_names(config.env.red_agent)
    ]
    return [
        _appraisal(
            np.mean([totals[number] for totals, _ in of_reds], axis=0),
            np.concatenate([counters[number] for _, counters in of_reds]),
            config,
        )
        for number in range(len(written))
    ]


def _play(
    policy: Policy, config: TrainConfig, red: str, written: Sequence[str], episodes: int
) -> tuple[Float64s, Int64s]:
    """Totals, (order, episode), and counters, (order, episode, COUNTER_COUNT)."""
    trial = Trial(episodes=episodes, max_steps=config.env.max_steps, seed=SEED)
    followed = [order for order in written for _ in range(episodes)]
    batch = Batch(len(followed), _game(config, red, followed))
    batch.reset(np.tile(game_seeds(trial, red), len(written)))
    ((_, totals),) = deque(play_steps(_Follower(policy, batch.orders), trial, batch), maxlen=1)
    shape = (len(written), episodes)
    return totals.reshape(shape), batch.counters.reshape(*shape, -1).astype(np.int64)


def _game(config: TrainConfig, red: str, followed: Sequence[str]) -> BatchConfig:
    settings: dict[str, Any] = {
        "knowledge": config.order.knowledge,
        "definition": config.order.definition,
    }
    return BatchConfig(
        red=red,
        edition=config.env.edition,
        green=config.env.green,
        max_steps=config.env.max_steps,
        order=followed,
        autoreset="disabled",
        **settings,
    )


class _Follower(PolicyDefender):
    """A policy that is told the order of each game, if it wants to know."""

    def __init__(self, policy: Policy, numbers: Any) -> None:
        super().__init__(policy)
        self._numbers = numbers

    def begin(self, batch: Any) -> None:
        super().begin(batch)
        self._policy.follow(self._numbers)


def _appraisal(totals: Float64s, counters: Int64s, config: TrainConfig) -> OrderScore:
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

"""A search from start to end: decide, train, observe, until the budget is spent."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from importlib.metadata import version
from typing import Any, Protocol

from cagepool import runs
from cagepool.evaluate.files import OUTCOME
from cagepool.evaluate.policy import Policy
from cagepool.search.budget import Budget
from cagepool.search.config import SearchConfig
from cagepool.search.order import nearest
from cagepool.search.proposal import propose
from cagepool.search.reach import reached_types
from cagepool.search.records import (
    Decision,
    decided,
    read_decisions,
    write_decisions,
    write_orders,
    write_updates,
)
from cagepool.search.ucb import Outlook, outlook
from cagepool.sim.orders import ALL_ORDERS
from cagepool.train import session
from cagepool.train.appraisal import appraise
from cagepool.train.config import TrainConfig, parsed

UNIVERSAL = "universal"  # folder of the one training to all orders


class Listener(session.Listener, Protocol):
    """Is told how a search goes."""

    def decided(self, decision: Decision, believed: Outlook | None, spent: int, /) -> None:
        """A training begins, or goes on after an interruption."""

    def trained(self, decision: Decision, /) -> None:
        """A training has ended."""


def create(path: Any, config: SearchConfig) -> runs.Run:
    """Make the folder of a new search.

    Raises:
        ValueError: there is something already, or it can't be written.
    """
    run = runs.create(path, config.as_dict(), version("cagepool"))
    write_decisions(run.path, [])
    return run


def search(run: runs.Run, listener: Listener, should_stop: Callable[[], bool]) -> bool:
    """Go on with a search from where it is to the end of its budget.

    Args:
        run: The folder of a search, new or stopped or killed.
        listener: Is told how it goes.
        should_stop: Asked between two updates.

    Returns:
        Whether the search is finished.

    Raises:
        ValueError: the folder is damaged, or another process searches there.
        OSError: something can't be written.
    """
    config = parsed(run.settings, SearchConfig)
    with run.held():
        if config.method == "universal":
            return _train_universal(run, config, listener, should_stop)
        decisions = read_decisions(run.path)
        while (decisions and not decisions[-1].outcome) or _decide(run, config, decisions):
            pending = decisions[-1]
            observed = _observed(decisions[:-1])
            believed = outlook(observed, config.gp_beta) if observed else None
            listener.decided(pending, believed, _spent(decisions))
            if not _train(run, config, pending, decisions, (listener, should_stop)):
                return False
            listener.trained(decisions[-1])
        _tabulate(run, config, decisions)  # once more: it may have been killed before it could
    return True


def _spent(decisions: list[Decision]) -> int:
    return sum(decision.episodes or 0 for decision in decisions)


def _observed(decisions: list[Decision]) -> dict[int, Any]:
    """The latest observation of each order: an older one is of a policy that learned on."""
    return {decision.number: decision.observation for decision in decisions}


def _decide(run: runs.Run, config: SearchConfig, decisions: list[Decision]) -> bool:
    """Add the next decision, if the budget allows one."""
    budget = Budget(config.total_episodes, _spent(decisions))
    allowance = budget.allowance(config.max_episodes_per_order, config.n_envs)
    if not allowance:
        return False
    iteration = len(decisions)
    proposal = propose(config.method, _observed(decisions), iteration, config.seed, config.gp_beta)
    made = decided(proposal, iteration)
    inherits = None
    if config.inherit and decisions:
        inherits = nearest(proposal.order, [decision.number for decision in decisions])
    decisions.append(replace(made, allowance=allowance, inherits=inherits))
    write_decisions(run.path, decisions)
    return True


def _train(
    run: runs.Run,
    config: SearchConfig,
    pending: Decision,
    decisions: list[Decision],
    watched: tuple[Listener, Callable[[], bool]],
) -> bool:
    """Train to the order of the pending decision and write down what came of it."""
    parent = None if pending.inherits is None else f"../{decisions[pending.inherits].run}"
    # A gate would end training to an order that has passed before with its first batch.
    is_settled = any(old.passes for old in decisions if old.order == pending.order)
    settings = config.training_to(
        pending.number,
        pending.iteration,
        total_episodes=pending.allowance,
        start_from=parent,
        gate=config.gate and not is_settled,
    )
    training = _training_run(run, pending.run, settings)
    if not session.train(training, *watched):
        return False
    outcome = json.loads((training.path / OUTCOME).read_text(encoding="utf-8"))
    episodes = int(training.metrics()["episodes"][-1])
    decisions[-1] = pending.ended(outcome, episodes, _spent(decisions) + episodes)
    write_decisions(run.path, decisions)
    _tabulate(run, config, decisions)
    return True


def _tabulate(run: runs.Run, config: SearchConfig, decisions: list[Decision]) -> None:
    """Write the tables that follow from the decisions, all of which have ended."""
    write_updates(run.path, decisions)
    results: dict[int, Mapping[str, Any]] = {}
    for decision in decisions:
        trainings = sum(other.order == decision.order for other in decisions)
        results[decision.number] = {**asdict(decision), "trainings": trainings}
    believed = outlook(_observed(decisions), config.gp_beta) if decisions else None
    write_orders(run.path, results, believed, reached_types(config))


def _training_run(run: runs.Run, name: str, settings: TrainConfig) -> runs.Run:
    """The folder of a training; one that was being made when the search was killed is made anew."""
    path = run.path / name
    if runs.is_run(path):
        return runs.open_run(path)
    shutil.rmtree(path, ignore_errors=True)
    return runs.create(path, settings.as_dict(), version("cagepool"))


def _train_universal(
    run: runs.Run, config: SearchConfig, listener: Listener, should_stop: Callable[[], bool]
) -> bool:
    """Train one policy to all orders, then let it play to each of them."""
    settings = config.universal_training()
    training = _training_run(run, UNIVERSAL, settings)
    if not session.train(training, listener, should_stop):
        return False
    policy = Policy(training.checkpoint("last").arrays, training.settings)
    found = appraise(policy, settings, ALL_ORDERS, config.appraisal_episodes)
    results = {
        number: {**asdict(one), "reward": one.mean, "trainings": 1}
        for number, one in enumerate(found)
    }
    write_orders(run.path, results, None, reached_types(config))
    return True

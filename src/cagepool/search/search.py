"""A search from start to end: decide, train, observe, until the budget is spent."""

import json
import shutil
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from importlib.metadata import version
from typing import Any, Protocol

from cagepool import runs
from cagepool.evaluate.files import OUTCOME
from cagepool.evaluate.policy import Policy
from cagepool.search.budget import Budget
from cagepool.search.config import SearchConfig
from cagepool.search.executors import Trainings, trainings_of
from cagepool.search.permutations import nearest
from cagepool.search.reach import reached_types
from cagepool.search.records import (
    Decision,
    decided,
    read_decisions,
    write_decisions,
    write_orders,
    write_updates,
)
from cagepool.search.strategy import propose
from cagepool.search.ucb import Outlook, outlook, with_pending
from cagepool.sim.orders import ALL_ORDERS
from cagepool.train import runner
from cagepool.train.appraisal import appraise
from cagepool.train.config import TrainConfig, parsed

UNIVERSAL = "universal"  # folder of the one training to all orders


class Listener(runner.Listener, Protocol):
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
        with trainings_of(config, listener) as trainings:
            play = _Search(run, config, (listener, should_stop), trainings)
            if not play.to_the_end():
                return False
        _tabulate(run, config, play.decisions)  # it may have been killed before it could
    return True


class _Search:
    def __init__(
        self,
        run: runs.Run,
        config: SearchConfig,
        watched: tuple[Listener, Callable[[], bool]],
        trainings: Trainings,
    ) -> None:
        self.decisions = read_decisions(run.path)
        self._run = run
        self._config = config
        self._listener, self._should_stop = watched
        self._trainings = trainings

    def to_the_end(self) -> bool:
        """Whether the search came to its end.

        What comes of trainings is taken note of in the order in which they were decided on: so no
        decision depends on which of those that are under way is done first.
        """
        under_way = deque(self._begin(old) for old in self.decisions if not old.outcome)
        while True:
            while len(under_way) < self._config.ray_actors and self._decide():
                under_way.append(self._begin(self.decisions[-1]))
            if not under_way:
                return True
            if not self._end(under_way.popleft()):
                return False

    def _decide(self) -> bool:
        """Add the next decision, if the budget allows one beside those that are under way."""
        config, decisions = self._config, self.decisions
        reserved = sum(decision.reserved for decision in decisions)
        budget = Budget(config.total_episodes, reserved)
        allowance = budget.allowance(config.max_episodes_per_order, config.n_envs)
        if not allowance:
            return False
        iteration = len(decisions)
        ended = [decision for decision in decisions if decision.outcome]
        pending = [decision.number for decision in decisions if not decision.outcome]
        known = with_pending(_observed(ended), pending, config.gp_beta)
        proposal = propose(config.method, known, iteration, config.seed, config.gp_beta)
        made = decided(proposal, iteration)
        inherits = None
        if config.inherit and ended:
            inherits = nearest(proposal.order, [decision.number for decision in ended])
        decisions.append(replace(made, allowance=allowance, inherits=inherits))
        write_decisions(self._run.path, decisions)
        return True

    def _begin(self, pending: Decision) -> tuple[Decision, runs.Run]:
        """Let the order of a decision be trained to."""
        ended = [decision for decision in self.decisions if decision.outcome]
        believed = outlook(_observed(ended), self._config.gp_beta) if ended else None
        self._listener.decided(pending, believed, _spent(ended))
        parent = None if pending.inherits is None else f"../{ended[pending.inherits].run}"
        # A gate would end training to an order that has passed before with its first batch.
        is_settled = any(old.passes for old in ended if old.order == pending.order)
        settings = self._config.training_to(
            pending.number,
            pending.iteration,
            total_episodes=pending.allowance,
            start_from=parent,
            gate=self._config.gate and not is_settled,
        )
        training = _training_run(self._run, pending.run, settings)
        self._trainings.begin(training)
        return pending, training

    def _end(self, under_way: tuple[Decision, runs.Run]) -> bool:
        """Wait for a training and write down what came of it."""
        pending, training = under_way
        repeated = self._trainings.end(training, self._should_stop)
        if repeated is None:
            return False
        outcome = json.loads((training.path / OUTCOME).read_text(encoding="utf-8"))
        episodes = int(training.metrics()["episodes"][-1])
        ended = [decision for decision in self.decisions if decision.outcome]
        came = pending.ended(outcome, episodes, _spent(ended) + episodes)
        self.decisions[pending.iteration] = replace(came, repeated=repeated)
        write_decisions(self._run.path, self.decisions)
        _tabulate(self._run, self._config, [*ended, self.decisions[pending.iteration]])
        self._listener.trained(self.decisions[pending.iteration])
        return True


def _spent(decisions: list[Decision]) -> int:
    return sum(decision.episodes or 0 for decision in decisions)


def _observed(decisions: list[Decision]) -> dict[int, Any]:
    """The latest observation of each order: an older one is of a policy that learned on."""
    return {decision.number: decision.observation for decision in decisions}


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
    if not runner.train(training, listener, should_stop):
        return False
    policy = Policy(training.checkpoint("last").arrays, training.settings)
    found = appraise(policy, settings, ALL_ORDERS, config.appraisal_episodes)
    results = {
        number: {**asdict(one), "reward": one.mean, "trainings": 1}
        for number, one in enumerate(found)
    }
    write_orders(run.path, results, None, reached_types(config))
    return True

"""The search loop: propose an order, train to it, observe its reward, until the budget is spent."""

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np
from msgspec.structs import asdict, replace

from cagepool import _optional, runs
from cagepool.evaluate.defenders import SCRIPTED, scripted_defender
from cagepool.evaluate.policy import Policy
from cagepool.evaluate.rollout import Trial, game_seeds, play_steps, start_games
from cagepool.runs.listing import allowance
from cagepool.search.config import SearchConfig
from cagepool.search.gp import Observation, Posterior, posterior
from cagepool.search.permutations import index_of_nearest
from cagepool.search.records import (
    Decision,
    read_decisions,
    write_decisions,
    write_orders,
    write_updates,
)
from cagepool.search.strategy import add_pending, propose
from cagepool.sim.names import HOST_TYPE, HOSTS, red_class_names
from cagepool.sim.orders import ALL_ORDERS
from cagepool.train import runner
from cagepool.train.config import TrainConfig
from cagepool.train.evaluation import evaluate_orders
from cagepool.train.tracking import Callback

UNIVERSAL = "universal"  # folder of the training of the order-conditioned policy
REACH_EPISODES = 200  # per scripted defender, to find the host types that red compromises


class SearchListener(Callback, Protocol):
    """Callbacks of a search."""

    def on_training_start(
        self, decision: Decision, predicted: Posterior | None, spent: int, /
    ) -> None:
        """A training starts, or resumes after an interruption, when `spent` episodes are played."""

    def on_training_end(self, decision: Decision, /) -> None:
        """A training has ended; the decision has its result."""


class TrainingExecutor(Protocol):
    """Executes whole trainings, possibly several at a time."""

    def submit(self, run: runs.Run, /) -> None:
        """Submit a training."""

    def wait(self, run: runs.Run, should_stop: Callable[[], bool], /) -> int | None:
        """Wait for a training; returns the number of restarts, or none if it was stopped."""


class LocalExecutor:
    """Trains in this process, one run at a time."""

    def __init__(self, listener: Callback) -> None:
        """Report updates to `listener`."""
        self._listener = listener

    def submit(self, _run: runs.Run) -> None:
        """Do nothing: `wait` trains."""

    def wait(self, run: runs.Run, should_stop: Callable[[], bool]) -> int | None:
        """Train the run to its end."""
        return 0 if runner.train(run, self._listener, should_stop) else None


def create(path: Any, config: SearchConfig, *, numbered: bool = False) -> runs.Run:
    """Create the folder of a new search; `numbered`: or one like `path-2` if it is in use.

    Raises:
        ValueError: the folder exists already, or can't be written.
    """
    run = runs.create(path, config.as_dict(), version("cagepool"), numbered=numbered)
    write_decisions(run.path, [])
    return run


def search(run: runs.Run, listener: SearchListener, should_stop: Callable[[], bool]) -> bool:
    """Run or resume a search until its budget is spent.

    Args:
        run: Folder of a search: new, stopped or killed.
        listener: Receives the progress.
        should_stop: Asked after each update.

    Returns:
        Whether the search is finished.

    Raises:
        ValueError: the folder is damaged, or another process searches in it.
        OSError: a file can't be written.
    """
    config = SearchConfig.from_dict(run.settings)
    with run.lock():
        if config.search.method == "universal":
            return _train_universal(run, config, listener, should_stop)
        with _make_executor(config, listener) as executor:
            loop = _SearchLoop(run, config, (listener, should_stop), executor)
            if not loop.run_to_end():
                return False
        # Again: an earlier process may have been killed between the decisions and these tables.
        _write_tables(run, config, loop.decisions)
    return True


def next_allowance(config: SearchConfig, reserved: int) -> int:
    """Episodes of the next training, or 0 if the budget does not suffice for one per environment.

    Args:
        config: Settings of the search.
        reserved: Episodes of all earlier trainings, played or allowed.
    """
    return allowance(config.as_dict(), reserved)


@cache
def reached_types(config: TrainConfig) -> set[str]:
    """Host types that red compromises in any game against a scripted defender."""
    compromised = np.zeros(len(HOSTS), np.bool_)
    trial = Trial(
        episodes=REACH_EPISODES,
        max_steps=config.env.max_steps,
        edition=config.env.edition,
        green=config.env.green,
    )
    for red in red_class_names(config.env.red_agent):
        for name in SCRIPTED:
            batch = start_games(trial, red, game_seeds(trial, red))
            for _ in play_steps(scripted_defender(name), trial, batch):
                compromised |= (batch.true_state["access"] > 0).any(axis=0)
    return {
        HOST_TYPE[host]
        for host, is_compromised in zip(HOSTS, compromised, strict=True)
        if is_compromised and host != "User0"  # where red starts
    }


class _SearchLoop:
    def __init__(
        self,
        run: runs.Run,
        config: SearchConfig,
        callbacks: tuple[SearchListener, Callable[[], bool]],
        executor: TrainingExecutor,
    ) -> None:
        self.decisions = read_decisions(run.path)
        self._run = run
        self._config = config
        self._listener, self._should_stop = callbacks
        self._executor = executor

    def run_to_end(self) -> bool:
        """Whether the budget was spent before a stop.

        Results are recorded in the order of the decisions. A decision therefore does not depend on
        which of several concurrent trainings ends first.
        """
        pending = deque(
            self._start_training(decision) for decision in self.decisions if not decision.outcome
        )
        while True:
            while len(pending) < self._config.env.ray_actors and self._decide():
                pending.append(self._start_training(self.decisions[-1]))
            if not pending:
                return True
            if not self._finish_training(*pending.popleft()):
                return False

    @property
    def _ended(self) -> list[Decision]:
        return [decision for decision in self.decisions if decision.outcome]

    def _decide(self) -> bool:
        """Add the next decision; returns whether the budget allowed one."""
        config, decisions, ended = self._config, self.decisions, self._ended
        episodes = next_allowance(config, sum(other.reserved_episodes for other in decisions))
        if not episodes:
            return False
        iteration = len(decisions)
        pending = [other.order_number for other in decisions if not other.outcome]
        observations = add_pending(_latest_observations(ended), pending, config.search.gp_beta)
        proposal = propose(
            config.search.method, observations, iteration, config.run.seed, config.search.gp_beta
        )
        inherits = None
        if config.search.inherit and ended:
            inherits = index_of_nearest(proposal.order, [other.order_number for other in ended])
        decision = Decision.from_proposal(proposal, iteration)
        decisions.append(replace(decision, allowance=episodes, inherits=inherits))
        write_decisions(self._run.path, decisions)
        return True

    def _start_training(self, decision: Decision) -> tuple[Decision, runs.Run]:
        """Submit the training of a decision."""
        ended = self._ended
        predicted = (
            posterior(_latest_observations(ended), self._config.search.gp_beta) if ended else None
        )
        self._listener.on_training_start(decision, predicted, _episodes_of(ended))
        parent = None if decision.inherits is None else f"../{ended[decision.inherits].run}"
        # Early stopping would end the training after one update if the order has passed before.
        has_passed = any(other.passes for other in ended if other.order == decision.order)
        settings = self._config.training_config(
            decision.order_number,
            decision.iteration,
            total_episodes=decision.allowance,
            start_from=parent,
            early_stopping=self._config.order.early_stopping and not has_passed,
        )
        training = _open_training(self._run, decision.run, settings)
        self._executor.submit(training)
        return decision, training

    def _finish_training(self, decision: Decision, training: runs.Run) -> bool:
        """Wait for a training and record its result; returns whether it ended."""
        restarts = self._executor.wait(training, self._should_stop)
        if restarts is None:
            return False
        outcome = training.workflow()
        assert outcome is not None, "a training that has ended has a workflow.json"
        episodes = int(training.metrics()["episodes"][-1])
        earlier = self._ended
        decision = replace(
            decision.with_outcome(outcome, episodes, _episodes_of(earlier) + episodes),
            repeated=restarts,
        )
        self.decisions[decision.iteration] = decision
        write_decisions(self._run.path, self.decisions)
        _write_tables(self._run, self._config, [*earlier, decision])
        self._listener.on_training_end(decision)
        return True


def _make_executor(
    config: SearchConfig, listener: Callback
) -> AbstractContextManager[TrainingExecutor]:
    if config.env.backend != "ray":
        return nullcontext(LocalExecutor(listener))
    with _optional.require("backend ray", "ray", "ray"):
        from cagepool.train.ray.executor import RayExecutor  # noqa: PLC0415 - takes seconds

    return RayExecutor(config.env.ray_actors)


def _episodes_of(decisions: list[Decision]) -> int:
    return sum(decision.episodes or 0 for decision in decisions)


def _latest_observations(decisions: list[Decision]) -> dict[int, Observation]:
    """One observation per order: a later training continues the policy of an earlier one."""
    return {decision.order_number: decision.observation for decision in decisions}


def _write_tables(run: runs.Run, config: SearchConfig, decisions: list[Decision]) -> None:
    """Write updates.csv and orders.csv from decisions whose trainings have ended."""
    write_updates(run.path, decisions)
    results: dict[int, Mapping[str, Any]] = {}
    for decision in decisions:
        trainings = sum(other.order == decision.order for other in decisions)
        results[decision.order_number] = {**asdict(decision), "trainings": trainings}
    observations = _latest_observations(decisions)
    predicted = posterior(observations, config.search.gp_beta) if decisions else None
    write_orders(run.path, results, predicted, reached_types(config))


def _open_training(run: runs.Run, name: str, settings: TrainConfig) -> runs.Run:
    """Open or create the folder of a training."""
    path = run.path / name
    if runs.is_run(path):
        return runs.open_run(path)
    return runs.create(path, settings.as_dict(), version("cagepool"))


def _train_universal(
    run: runs.Run, config: SearchConfig, listener: SearchListener, should_stop: Callable[[], bool]
) -> bool:
    """Train one order-conditioned policy, then evaluate it on every order."""
    settings = config.universal_training_config()
    training = _open_training(run, UNIVERSAL, settings)
    if not runner.train(training, listener, should_stop):
        return False
    policy = Policy(training.checkpoint("last").arrays, training.settings)
    evaluations = evaluate_orders(policy, settings, ALL_ORDERS, config.order.n_eval_episodes)
    results = {
        number: {**asdict(evaluation), "reward": evaluation.mean, "trainings": 1}
        for number, evaluation in enumerate(evaluations)
    }
    write_orders(run.path, results, None, reached_types(config))
    return True

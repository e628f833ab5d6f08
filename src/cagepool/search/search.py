"""The search loop: propose an order, train to it, observe its reward, until the budget is spent."""

from collections import deque
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from msgspec.structs import asdict, replace

from cagepool import runs
from cagepool.evaluate.rollout import Trial, game_seeds, play_steps, start_games
from cagepool.experiments.executor import (
    Executor,
    LocalExecutor,
    ProcessExecutor,
    RayExecutor,
    TrainingError,
)
from cagepool.experiments.folder import Training
from cagepool.experiments.listener import Listener
from cagepool.policy.defenders import SCRIPTED, scripted_defender
from cagepool.policy.policy import Policy
from cagepool.runs.folder import lock_folder
from cagepool.runs.listing import allowance
from cagepool.scenarios import CAGE2
from cagepool.search.config import SearchConfig, SearchListener
from cagepool.search.records import (
    Decision,
    read_decisions,
    write_decisions,
    write_orders,
    write_updates,
)
from cagepool.search.strategy import (
    Observation,
    add_pending,
    index_of_nearest,
    posterior,
    propose,
)
from cagepool.sim.compliance import ALL_ORDERS
from cagepool.sim.names import HOSTS, red_class_names
from cagepool.train import runner
from cagepool.train.config import TrainConfig
from cagepool.train.evaluation import evaluate_orders

UNIVERSAL = "universal"  # folder of the training of the order-conditioned policy
REACH_EPISODES = 200  # per scripted defender, to find the host types that red compromises


def create(path: Any, config: SearchConfig, *, numbered: bool = False) -> runs.Run:
    """Create the folder of a new search; `numbered`: or one like `path-2` if it is in use.

    Raises:
        ValueError: the folder exists already, or can't be written.
    """
    run = runs.create(path, config.as_dict(), version("cagepool"), numbered=numbered)
    write_decisions(run.path, [])
    return run


def search(
    run: runs.Run,
    listener: SearchListener | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> bool:
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
    config, listener = SearchConfig.from_dict(run.settings), listener or SearchListener()
    with lock_folder(run.path, runs.CONFIG):
        if config.search.method == "universal":
            return _train_universal(run, config, listener, should_stop)
        with _make_executor(config, listener) as executor:
            loop = _SearchLoop(run, config, (listener, should_stop), executor)
            if not loop.run_to_end():
                return False
        # Again: an earlier process may have been killed between the decisions and these tables.
        _write_tables(run, config, loop.decisions)
    return True


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
        role
        for role, is_compromised in zip(CAGE2.roles, compromised, strict=True)
        if is_compromised and role is not None
    }


class _SearchLoop:
    def __init__(
        self,
        run: runs.Run,
        config: SearchConfig,
        callbacks: tuple[SearchListener, Callable[[], bool]],
        executor: Executor,
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
            while len(pending) < self._config.jobs and self._decide():
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
        reserved = sum(other.reserved_episodes for other in decisions)
        episodes = allowance(config.as_dict(), reserved)
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

    def _start_training(self, decision: Decision) -> tuple[Decision, Training]:
        """Submit the training of a decision."""
        ended = self._ended
        predicted = (
            posterior(_latest_observations(ended), self._config.search.gp_beta) if ended else None
        )
        self._listener.on_decision(decision, predicted, _episodes_of(ended))
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
        training = _training(self._run, decision.run, settings)
        self._executor.submit(training)
        return decision, training

    def _finish_training(self, decision: Decision, training: Training) -> bool:
        """Wait for a training and record its result; returns whether it ended."""
        try:
            restarts = self._executor.wait(training, self._should_stop)
        except TrainingError as error:
            raise ValueError(f"the training in {training.path} failed: {error}") from error
        if restarts is None:
            return False
        run = training.open_or_create()
        outcome = run.workflow()
        assert outcome is not None, "a training that has ended has a workflow.json"
        episodes = int(run.metrics()["episodes"][-1])
        earlier = self._ended
        decision = replace(
            decision.with_outcome(outcome, episodes, _episodes_of(earlier) + episodes),
            repeated=restarts,
        )
        self.decisions[decision.iteration] = decision
        write_decisions(self._run.path, self.decisions)
        _write_tables(self._run, self._config, [*earlier, decision])
        self._listener.on_result(decision)
        return True


def _make_executor(config: SearchConfig, listener: Listener) -> Executor:
    processes = LocalExecutor if config.jobs == 1 else ProcessExecutor
    return (RayExecutor if config.is_on_ray else processes)(runner.train, listener, config.jobs)


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


def _training(run: runs.Run, name: str, settings: TrainConfig) -> Training:
    return Training(name=name, experiment=run.path, run=name, settings=settings.as_dict())


def _train_universal(
    run: runs.Run, config: SearchConfig, listener: SearchListener, should_stop: Callable[[], bool]
) -> bool:
    """Train one order-conditioned policy, then evaluate it on every order."""
    settings = config.universal_training_config()
    training = _training(run, UNIVERSAL, settings)
    if LocalExecutor(runner.train, listener).wait(training, should_stop) is None:
        return False
    trained = training.open_or_create()
    policy = Policy(trained.checkpoint("last").arrays, trained.settings)
    evaluations = evaluate_orders(policy, settings, ALL_ORDERS, config.order.n_eval_episodes)
    results = {
        number: {**asdict(evaluation), "reward": evaluation.mean, "trainings": 1}
        for number, evaluation in enumerate(evaluations)
    }
    write_orders(run.path, results, None, reached_types(config))
    return True

"""A training run from start to end: training loop, evaluations, early stopping, checkpoints."""

import math
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from cagepool import runs
from cagepool._stages import stage
from cagepool.runs.schema import Count, TrainingState, WorkflowFile
from cagepool.sim import compliance
from cagepool.train.config import DEFAULT_TRACKERS, TrainConfig
from cagepool.train.evaluation import (
    EarlyStopping,
    evaluate_orders,
    evaluate_weights,
    score_of_returns,
    training_policy,
)
from cagepool.train.ppo import Trainer, Update
from cagepool.train.tracking import (
    Callback,
    CallbackList,
    NullCallback,
    ResumePoint,
    Row,
    RunLogger,
    open_trackers,
)

# Errors of arrays and values that do not fit the trainer.
_RESTORE_ERRORS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass
class Progress:
    """State of a run that is not in the trainer."""

    seconds: float = 0.0
    evaluated_episodes: Count = 0  # episodes played at the last evaluation
    best_score: float | None = None
    evals_since_best: Count = 0
    stop_reason: str = ""  # why the run ended before its last episode; empty if it did not
    returns: list[float] = field(default_factory=list)  # since the last evaluation
    early_stopping: EarlyStopping = field(default_factory=EarlyStopping)


def train(
    run: runs.Run,
    callback: Callback | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    *,
    log: Iterable[str] = DEFAULT_TRACKERS,
) -> bool:
    """Train a run from its start or its last checkpoint to its end.

    Args:
        run: A new run, or one that was stopped or killed.
        callback: Receives the progress.
        should_stop: Asked after every update; on true, a checkpoint is written first.
        log: Names of the trackers that log the run, see `config.TRACKERS`.

    Returns:
        Whether the run is finished.

    Raises:
        ValueError: the run folder is damaged, or another process trains it.
        OSError: a file cannot be written; the last checkpoint remains.
    """
    config = TrainConfig.from_dict(run.settings)
    with ExitStack() as stack:
        with stage("setup"):
            stack.enter_context(run.lock())
            trainer = stack.enter_context(Trainer(config))
            progress, resumed_at = _resume(run, trainer)
            if resumed_at is None and config.run.start_from is not None:
                _load_policy(trainer, run.path / config.run.start_from)
            logger = stack.enter_context(RunLogger(run, config.order, resumed_at))
            trackers = open_trackers(log, run, resumed_at)
            for tracker in trackers:
                stack.callback(tracker.close)
        callbacks = CallbackList([*trackers, callback or NullCallback()])
        is_finished = _Runner(run, trainer, logger, progress).train(callbacks, should_stop)
        if is_finished and config.order.order is not None:
            with stage("evaluation"):
                _write_outcome(run, trainer, progress.early_stopping)
        return is_finished


def _resume(run: runs.Run, trainer: Trainer) -> tuple[Progress, ResumePoint | None]:
    """Restore the last checkpoint; the resume point is none if the run has no checkpoint."""
    if not run.checkpoint_updates("last"):
        return Progress(), None
    checkpoint = run.checkpoint("last")
    try:
        state = msgspec.convert(checkpoint.state, TrainingState)
        if state.episodes > trainer.config.run.total_episodes:
            raise ValueError(f"it has played {state.episodes} episodes")
        trainer.restore(checkpoint.arrays, checkpoint.state)
        progress = msgspec.convert(state.progress, Progress)
    except _RESTORE_ERRORS as error:
        raise ValueError(f"{checkpoint.path} does not fit its run: {error}") from error
    return progress, ResumePoint(trainer.number, state.steps)


def _load_policy(trainer: Trainer, folder: Path) -> None:
    """Start from the last policy and optimizer state of another run."""
    checkpoint = runs.open_run(folder).checkpoint("last")
    try:
        trainer.load_policy(checkpoint.arrays)
    except _RESTORE_ERRORS as error:
        raise ValueError(
            f"start_from: the networks in {folder} do not match this configuration: {error}"
        ) from error


def _write_outcome(run: runs.Run, trainer: Trainer, early_stopping: EarlyStopping) -> None:
    """Write workflow.json: why the training ended, and the final evaluation with its order."""
    config = trainer.config
    order = config.order.order
    assert order is not None
    assert early_stopping.outcome is not None
    policy = training_policy(trainer.weights(), config)
    (score,) = evaluate_orders(policy, config, [order], config.order.n_eval_episodes)
    workflow = WorkflowFile(
        order=">".join(compliance.parse_order(order)),
        outcome=early_stopping.outcome,
        reason=early_stopping.reason,
        **msgspec.structs.asdict(score),
    )
    runs.write_model(run.path / runs.WORKFLOW, workflow)


def _check_finite(update: Update) -> None:
    """Raise before weights that are not finite replace a good checkpoint."""
    if not np.isfinite([*update.stats.loss, update.stats.gradient_norm]).all():
        raise ValueError(
            f"the losses of update {update.number} must be finite, got {update.stats.loss}: "
            "a smaller learning_rate or reward_scale may help"
        )


class _Runner:
    """Training loop of one process: logs, evaluates, stops early and writes checkpoints."""

    def __init__(
        self, run: runs.Run, trainer: Trainer, logger: RunLogger, progress: Progress
    ) -> None:
        self._run = run
        self._trainer = trainer
        self._logger = logger
        self._progress = progress
        self._config = trainer.config

    def train(self, callback: Callback, should_stop: Callable[[], bool]) -> bool:
        if self._progress.early_stopping.outcome is not None or self._progress.stop_reason:
            return True
        logged_at = saved_at = time.perf_counter()
        for update in self._trainer.updates():
            _check_finite(update)
            now = time.perf_counter()
            row = self._log(update, now - logged_at, callback)
            logged_at = now
            is_finished = self._is_finished(row)
            if is_finished or self._is_evaluation_due(update.episodes):
                with stage("evaluation"):
                    self._evaluate(row, callback)
            if is_finished or self._progress.stop_reason:
                self._finish(row)
                return True
            if should_stop():
                self._write_checkpoint()
                return False
            if now - saved_at >= self._config.run.checkpoint_seconds:
                self._write_checkpoint()
                saved_at = now
        return True

    def _log(self, update: Update, seconds: float, callback: Callback) -> Row:
        """Log an update that took so many seconds since the last one."""
        with stage("logging"):
            progress = self._progress
            if not self._config.env.is_cage:
                progress.returns += update.finished.returns
            progress.seconds += seconds
            other_seconds = seconds - (update.wait_seconds + update.update_seconds)
            row = self._logger.log_update(update, progress.seconds, other_seconds)
            callback.on_update(row)
            return row

    def _is_finished(self, row: Row) -> bool:
        config = self._config
        stops = config.order.stops_early and self._progress.early_stopping.update(row, config.order)
        return stops or row["episodes"] == config.run.total_episodes

    def _is_evaluation_due(self, episodes: int) -> bool:
        return episodes >= self._progress.evaluated_episodes + self._config.run.eval_interval

    def _evaluate(self, row: Row, callback: Callback) -> None:
        """Evaluate the policy, and save it if it is the best so far."""
        progress, config = self._progress, self._config
        weights = self._trainer.weights()
        score = (
            evaluate_weights(config, weights)
            if config.env.is_cage
            else score_of_returns(progress.returns)
        )
        progress.evaluated_episodes = int(row["episodes"])
        progress.returns = []
        is_known = not math.isnan(score.score)
        is_best = is_known and (progress.best_score is None or score.score > progress.best_score)
        # Earlier policies did not comply with the order.
        is_best |= is_known and progress.early_stopping.outcome == "passed"
        progress.evals_since_best = 0 if is_best else progress.evals_since_best + 1
        progress.stop_reason = self._stop_reason(score.score)
        if is_best:
            progress.best_score = score.score
            state = {name: row[name] for name in ("update", "episodes", "steps")}
            with stage("checkpoint"):
                self._run.save_checkpoint("best", weights, {**state, "score": score.score})
        with stage("logging"):
            callback.on_evaluation(self._logger.log_evaluation(row, score, is_best=is_best))

    def _stop_reason(self, score: float) -> str:
        """Why an evaluation with this score ends the run; empty: the run goes on."""
        run, stalled = self._config.run, self._progress.evals_since_best
        if run.target_score is not None and score >= run.target_score:
            return f"the score {score:.2f} reaches the target {run.target_score:g}"
        if run.eval_patience and stalled >= run.eval_patience:
            return f"{stalled} evaluations in a row gave no new best score"
        return ""

    def _finish(self, row: Row) -> None:
        order = self._config.order
        if order.order is not None:
            self._progress.early_stopping.finish(row, enabled=order.stops_early)
        self._write_checkpoint(finished=True)

    def _write_checkpoint(self, *, finished: bool = False) -> None:
        with stage("checkpoint"):
            self._logger.sync()
            arrays, state = self._trainer.state()
            stopping = self._progress.early_stopping
            outcome = {"outcome": stopping.outcome, "reason": stopping.reason}
            self._run.save_checkpoint(
                "last",
                arrays,
                {
                    **state,
                    "progress": asdict(self._progress),
                    "finished": finished,
                    **(outcome if stopping.outcome is not None else {}),
                },
            )

"""A training run from start to end: its folder, its checks, its checkpoints."""

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from cagepool import runs
from cagepool._stages import stage
from cagepool.evaluate.policy import Policy
from cagepool.train.appraisal import write_outcome
from cagepool.train.config import TrainConfig
from cagepool.train.early_stopping import Gate
from cagepool.train.evaluation import Check, check, check_of_returns
from cagepool.train.logging import Moment, Recorder, Row
from cagepool.train.ppo import Trainer, Update


class Listener(Protocol):
    """Is told how a run goes."""

    def updated(self, row: Row, /) -> None:
        """An update is done."""

    def checked(self, row: Row, check: Check, /, *, is_best: bool) -> None:
        """The policy was scored on other seeds."""


@dataclass
class Progress:
    """What a run must remember beside what the trainer does."""

    seconds: float = 0.0
    checked: int = 0  # episodes played at the last check
    best: float | None = None
    returns: list[float] = field(default_factory=list)  # since the last check, if it needs them
    gate: Gate = field(default_factory=Gate)


def train(run: runs.Run, listener: Listener, should_stop: Callable[[], bool]) -> bool:
    """Train a run from where it is to its end.

    Args:
        run: A new one, or one that was stopped or killed.
        listener: Is told how it goes.
        should_stop: Asked between two updates; if so, a checkpoint is written first.

    Returns:
        Whether the run is finished.

    Raises:
        ValueError: the run's folder is damaged, or another process trains it.
        OSError: something can't be written; the last checkpoint is still there.
    """
    config = TrainConfig.from_dict(run.settings)
    with ExitStack() as stack:
        stack.enter_context(run.lock())
        with stage("setup"):
            trainer = stack.enter_context(Trainer(config))
        progress, resumed_at = _resumed(run, trainer)
        if resumed_at is None and config.run.start_from is not None:
            _take_over(trainer, run.path / config.run.start_from)
        with stage("setup"):
            recorder = Recorder(run, resumed_at)
        with recorder:
            is_over = _Session(run, trainer, recorder, progress).play(listener, should_stop)
        if is_over and config.order.order is not None:
            weights = trainer.learner.networks.arrays()
            with stage("evaluation"):
                write_outcome(run, config, progress.gate, Policy(weights, config.as_dict()))
        return is_over


def _resumed(run: runs.Run, trainer: Trainer) -> tuple[Progress, Moment | None]:
    """What a run had to remember, and where it stood; none if it never came to a checkpoint."""
    if not run.checkpoint_updates("last"):
        return Progress(), None
    checkpoint = run.checkpoint("last")
    try:
        trainer.restore(checkpoint.arrays, checkpoint.state)
        moment = Moment(trainer.number, trainer.episodes)
        kept = dict(checkpoint.state["progress"])
        gate = Gate(**kept.pop("gate", {}))
        return Progress(**kept, gate=gate), moment
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{checkpoint.path} does not fit its run: {error}") from error


def _take_over(trainer: Trainer, folder: Path) -> None:
    """Start from the last policy of another run, its optimiser included."""
    checkpoint = runs.open_run(folder).checkpoint("last")
    try:
        trainer.learner.take(checkpoint.arrays)
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"the run of start_from must have such a policy as this one, {folder} has not: {error}"
        ) from error


def _check_finite(update: Update) -> None:
    """Stop before a policy that is lost takes the place of one that was kept."""
    if not np.isfinite([*update.learned.parts, update.learned.gradient_norm]).all():
        raise ValueError(
            f"the losses of update {update.number} must be finite, got {update.learned.parts}: "
            "a smaller learning_rate or reward_scale may help"
        )


def _stopped(progress: Progress) -> dict[str, str]:
    """Why a run to an order ended, if it has."""
    gate = progress.gate
    return {"outcome": gate.outcome, "reason": gate.reason} if gate.outcome is not None else {}


class _Session:
    def __init__(
        self, run: runs.Run, trainer: Trainer, recorder: Recorder, progress: Progress
    ) -> None:
        self._run = run
        self._trainer = trainer
        self._recorder = recorder
        self._progress = progress
        self._config = trainer.config

    def play(self, listener: Listener, should_stop: Callable[[], bool]) -> bool:
        trainer, progress = self._trainer, self._progress
        if progress.gate.outcome is not None:
            return True
        mark = kept = time.perf_counter()
        for update in trainer.updates():
            _check_finite(update)
            if not self._config.env.is_cage:
                progress.returns += update.finished.returns
            now = time.perf_counter()
            known = update.wait_seconds + update.update_seconds
            progress.seconds += now - mark
            with stage("logging"):
                row = self._recorder.update(update, progress.seconds, now - mark - known)
                listener.updated(row)
            mark = now
            is_over = self._is_over(row)
            if is_over or self._is_check_due(update.episodes):
                self._check(row, listener)
            if is_over:
                if self._config.order.order is not None:
                    progress.gate.finish(row, gated=self._config.order.stops_early)
                self._keep(finished=True)
                return True
            if should_stop():
                self._keep()
                return False
            if now - kept >= self._config.run.checkpoint_seconds:
                self._keep()
                kept = now
        return True

    def _is_over(self, row: Row) -> bool:
        config = self._config
        is_judged = config.order.stops_early and self._progress.gate.judge(row, config.order)
        return is_judged or row["episodes"] == config.run.total_episodes

    def _is_check_due(self, episodes: int) -> bool:
        return episodes >= self._progress.checked + self._config.run.eval_interval

    def _check(self, row: Row, listener: Listener) -> None:
        """Score the policy, and keep it if none was better."""
        progress, config = self._progress, self._config
        networks = self._trainer.learner.networks
        with stage("evaluation"):
            is_cage = config.env.is_cage
            made = check(config, networks) if is_cage else check_of_returns(progress.returns)
        progress.checked = int(row["episodes"])
        progress.returns = []
        known = not math.isnan(made.score)
        is_best = known and (progress.best is None or made.score > progress.best)
        is_best |= known and progress.gate.outcome == "passed"  # the others do not keep the order
        if is_best:
            progress.best = made.score
            state = {name: row[name] for name in ("update", "episodes", "steps")}
            with stage("checkpoint"):
                self._run.save_checkpoint("best", networks.arrays(), {**state, "score": made.score})
        with stage("logging"):
            self._recorder.check(row, made, is_best=is_best)
            listener.checked(row, made, is_best=is_best)

    def _keep(self, *, finished: bool = False) -> None:
        arrays, state = self._trainer.state()
        progress = asdict(self._progress)
        with stage("checkpoint"):
            self._run.save_checkpoint(
                "last",
                arrays,
                {**state, "progress": progress, "finished": finished, **_stopped(self._progress)},
            )

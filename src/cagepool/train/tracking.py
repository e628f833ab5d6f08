"""Tables, callbacks and trackers of a run: CSV files, TensorBoard, and Weights & Biases (W&B).

Trackers log under the names that the dashboards of Stable-Baselines3 and CleanRL use, over the
number of environment steps; docs/tracking.md lists the names.
"""

import math
import os
import re
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeAlias

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event, SessionLog  # type: ignore[import-untyped]
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped]

from cagepool import _optional, runs
from cagepool.runs.schema import EVALUATIONS_COLUMNS, METRICS_COLUMNS, PROGRESS_COLUMNS
from cagepool.sim.compliance import compliance_summary, episode_compliance
from cagepool.train.config import OrderConfig
from cagepool.train.evaluation import PeriodicScore
from cagepool.train.ppo import Update
from cagepool.train.rollout import FinishedEpisodes

Row: TypeAlias = dict[str, float]


class ResumePoint(NamedTuple):
    """Progress of a run at the checkpoint from which it resumes."""

    update: int
    steps: int


class RunLogger:
    """Writes one row per update and per evaluation, from the start or the point of resumption."""

    def __init__(
        self, run: runs.Run, order: OrderConfig, resumed_at: ResumePoint | None = None
    ) -> None:
        """Open the files; a resumed run drops what it wrote after its checkpoint."""
        self._order = order
        last_update = None if resumed_at is None else resumed_at.update
        tables = {runs.METRICS: METRICS_COLUMNS, runs.EVALUATIONS: EVALUATIONS_COLUMNS}
        with ExitStack() as stack:  # closes the first files if a later one is damaged
            self._metrics, self._evaluations = (
                stack.enter_context(
                    closing(runs.TableWriter(run.path / name, columns, last_update=last_update))
                )
                for name, columns in tables.items()
            )
            self._files = stack.pop_all()

    def log_update(self, update: Update, seconds: float, other_seconds: float) -> Row:
        """Write the metrics of an update; returns its row."""
        row = _update_row(update) | _compliance_row(update.finished, self._order)
        row |= {"seconds": seconds, "other_seconds": other_seconds}
        self._metrics.append(row)
        return row

    def log_evaluation(self, row: Row, score: PeriodicScore, *, is_best: bool) -> Row:
        """Write the evaluation after the update of that row; returns the row of the evaluation."""
        progress = {name: row[name] for name in PROGRESS_COLUMNS}
        scores = {**progress, **score._asdict(), "best": float(is_best)}
        self._evaluations.append(scores)
        return scores

    def sync(self) -> None:
        """Write the tables to the disk, before a checkpoint that continues them."""
        self._metrics.sync()
        self._evaluations.sync()

    def close(self) -> None:
        """Close all files."""
        self._files.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _update_row(update: Update) -> Row:
    returns, lengths = update.finished.returns, update.finished.lengths
    shaped_returns = update.finished.shaped_returns
    stats = update.stats
    return {
        "update": update.number,
        "episodes": update.episodes,
        "steps": update.steps,
        "return_mean": float(np.mean(returns)) if returns else np.nan,
        "return_std": float(np.std(returns)) if returns else np.nan,
        "shaped_return_mean": float(np.mean(shaped_returns)) if shaped_returns else np.nan,
        "length_mean": float(np.mean(lengths)) if lengths else np.nan,
        "policy_loss": stats.loss.policy,
        "value_loss": stats.loss.value,
        "entropy": stats.loss.entropy,
        "kl": stats.loss.kl,
        "clip_fraction": stats.loss.clip_fraction,
        "explained_variance": stats.explained_variance,
        "gradient_norm": stats.gradient_norm,
        "learning_rate": stats.learning_rate,
        "staleness": update.staleness,
        "replaced": update.replaced_actors,
        "collect_seconds": update.collect_seconds,
        "wait_seconds": update.wait_seconds,
        "update_seconds": update.update_seconds,
    }


def _compliance_row(finished: FinishedEpisodes, order: OrderConfig) -> Row:
    """Compliance of the episodes that ended; `alignment_mean` is their mean alignment reward."""
    if not len(finished.counters):
        return {}
    shares = episode_compliance(finished.counters, undefined=0.0)
    summary = compliance_summary(finished.counters, order.definition)
    return {
        "alignment_mean": order.alignment_lambda * float(shares.mean()),
        "compliance": summary.compliance,
        "coverage": summary.coverage,
        "decisions": summary.decisions,
        "fixes": summary.fixes,
        "wasted_fixes": summary.wasted_fixes,
        "wasted_fixes_per_episode": summary.wasted_fixes / summary.episodes,
    }


UPDATE_NAMES = {  # by column of metrics.csv: in Stable-Baselines3, in CleanRL
    "return_mean": ("rollout/ep_rew_mean", "charts/episodic_return"),
    "length_mean": ("rollout/ep_len_mean", "charts/episodic_length"),
    "policy_loss": ("train/policy_gradient_loss", "losses/policy_loss"),
    "value_loss": ("train/value_loss", "losses/value_loss"),
    "entropy": ("losses/entropy",),  # Stable-Baselines3 logs its negative, `train/entropy_loss`
    "kl": ("train/approx_kl", "losses/approx_kl"),
    "clip_fraction": ("train/clip_fraction", "losses/clipfrac"),
    "explained_variance": ("train/explained_variance", "losses/explained_variance"),
    "learning_rate": ("train/learning_rate", "charts/learning_rate"),
}
EVALUATION_NAMES = {  # by column of evaluations.csv
    "return_mean": "eval/mean_reward",
    "return_error": "eval/standard_error",
    "score": "eval/score",
}


class Callback(Protocol):
    """Receives the progress of a run."""

    def on_update(self, row: Row, /) -> None:
        """Receive the metrics of an update: a row of `metrics.csv`."""

    def on_evaluation(self, scores: Row, /) -> None:
        """Receive the scores of a periodic evaluation: a row of `evaluations.csv`."""


class NullCallback:
    """Callback that ignores the progress."""

    def on_update(self, row: Row, /) -> None:
        """Do nothing."""

    def on_evaluation(self, scores: Row, /) -> None:
        """Do nothing."""


class CallbackList:
    """Passes the progress on to several callbacks, in their order."""

    def __init__(self, callbacks: Iterable[Callback]) -> None:
        """Take the callbacks."""
        self._callbacks = tuple(callbacks)

    def on_update(self, row: Row, /) -> None:
        """Pass on the metrics of an update."""
        for callback in self._callbacks:
            callback.on_update(row)

    def on_evaluation(self, scores: Row, /) -> None:
        """Pass on the scores of an evaluation."""
        for callback in self._callbacks:
            callback.on_evaluation(scores)


class Tracker(Callback, Protocol):
    """A callback that writes to files or to a service until it is closed."""

    def close(self) -> None:
        """Write what is left."""


def update_fields(row: Mapping[str, float]) -> dict[str, float]:
    """Metrics of an update under the names of Stable-Baselines3 and CleanRL.

    Columns that neither of them has are `train/` and the name of the column. Undefined values are
    left out.
    """
    columns = METRICS_COLUMNS[len(PROGRESS_COLUMNS) :]
    fields = {
        name: row[column]
        for column in columns
        for name in UPDATE_NAMES.get(column, (f"train/{column}",))
        if column in row
    }
    if "entropy" in row:
        fields["train/entropy_loss"] = -row["entropy"]
    steps_per_second = row["steps"] / max(row["seconds"], 1e-9)
    fields |= dict.fromkeys(("time/fps", "charts/SPS"), steps_per_second)
    return _defined(fields)


def evaluation_fields(scores: Mapping[str, float]) -> dict[str, float]:
    """Scores of a periodic evaluation under the names of Stable-Baselines3."""
    return _defined({name: scores[column] for column, name in EVALUATION_NAMES.items()})


def _defined(fields: Mapping[str, float]) -> dict[str, float]:
    return {name: float(value) for name, value in fields.items() if not math.isnan(value)}


def open_trackers(
    names: Iterable[str], run: runs.Run, resumed_at: ResumePoint | None
) -> list[Tracker]:
    """Open the trackers of these names, `tensorboard` or `wandb`."""
    first_dropped = None if resumed_at is None else resumed_at.steps + 1
    makers: dict[str, Callable[[], Tracker]] = {
        "tensorboard": lambda: TensorBoardTracker(run.path, first_dropped),
        "wandb": lambda: WandbTracker(run),
    }
    return [makers[name]() for name in names]


class TensorBoardTracker:
    """TensorBoard event file in a run folder.

    TensorBoard's own writer opens the file per value, in a thread that dies when the disk is full.
    This one writes the values of a step at once, and a write error reaches the caller.
    """

    def __init__(self, folder: Path, first_dropped: int | None = None) -> None:
        """Open a new file; steps of older files count up to `first_dropped` only."""
        name = f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}.{os.getpid()}"
        self._file = (folder / name).open("xb", buffering=0)
        self._records = RecordWriter(self._file)
        self._write(Event(wall_time=time.time(), file_version="brain.Event:2"))
        if first_dropped is not None:
            restart = SessionLog(status=SessionLog.START)
            self._write(Event(wall_time=time.time(), step=first_dropped, session_log=restart))

    def on_update(self, row: Row) -> None:
        """Write the metrics of an update."""
        self.add_scalars(update_fields(row), int(row["steps"]))

    def on_evaluation(self, scores: Row) -> None:
        """Write the scores of an evaluation."""
        self.add_scalars(evaluation_fields(scores), int(scores["steps"]))

    def add_scalars(self, values: Mapping[str, float], step: int) -> None:
        """Write the values of a step by their tags."""
        scalars = [Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        self._write(Event(wall_time=time.time(), step=step, summary=Summary(value=scalars)))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, event: Event) -> None:
        self._records.write(event.SerializeToString())


class WandbTracker:
    """Logs to Weights & Biases; `WANDB_MODE=offline` writes to the run folder only.

    The project is `cagepool`, or `WANDB_PROJECT`. A resumed run continues its W&B run.
    """

    def __init__(self, run: runs.Run) -> None:
        """Start or continue the W&B run."""
        with _optional.require("the tracker wandb", "wandb", "wandb"):
            import wandb  # noqa: PLC0415 - takes seconds

        try:
            self._run: Any = wandb.init(
                project=os.environ.get("WANDB_PROJECT", "cagepool"),
                name=run.path.resolve().name,
                dir=str(run.path),
                id=_wandb_id(run.path),
                resume="allow",
                config=runs.flat_settings(run.settings),
            )
        except (wandb.Error, OSError) as error:
            reason = " ".join(str(error).split())
            raise ValueError(
                f"log wandb must reach W&B: {reason}; WANDB_MODE=offline needs no account"
            ) from error

    def on_update(self, row: Row) -> None:
        """Log the metrics of an update."""
        self._log(update_fields(row), row)

    def on_evaluation(self, scores: Row) -> None:
        """Log the scores of an evaluation, at the step of the update before it."""
        self._log(evaluation_fields(scores), scores)

    def close(self) -> None:
        """Wait until everything is logged."""
        self._run.finish()

    def _log(self, fields: dict[str, float], row: Row) -> None:
        steps = int(row["steps"])
        self._run.log({**fields, "global_step": steps, "episodes": row["episodes"]}, step=steps)


def _wandb_id(folder: Path) -> str | None:
    """Id of the W&B run that an earlier process of this run has started; none: a new one."""
    names = sorted(path.name for path in (folder / "wandb").glob("*run-*"))
    ids = [match[1] for name in names if (match := re.fullmatch(r".*run-\d+_\d+-(\w+)", name))]
    return ids[-1] if ids else None

"""Callbacks and trackers of a run: TensorBoard, and Weights & Biases (W&B).

Trackers log under the names that the dashboards of Stable-Baselines3 and CleanRL use, over the
number of environment steps; docs/tracking.md lists the names.
"""

import math
import os
import re
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from tensorboard.compat.proto.event_pb2 import Event, SessionLog  # type: ignore[import-untyped]
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped]

from cagepool import _optional, runs
from cagepool.runs.schema import METRICS_COLUMNS, PROGRESS_COLUMNS
from cagepool.train.logging import ResumePoint, Row

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
EVALUATION_NAMES = {  # by column of checks.csv
    "return_mean": "eval/mean_reward",
    "return_error": "eval/standard_error",
    "score": "eval/score",
}


class Callback(Protocol):
    """Receives the progress of a run."""

    def on_update(self, row: Row, /) -> None:
        """Receive the metrics of an update: a row of `metrics.csv`."""

    def on_evaluation(self, scores: Row, /) -> None:
        """Receive the scores of a periodic evaluation: a row of `checks.csv`."""


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
    """Open the trackers of these names, `tensorboard` or `wandb`.

    Raises:
        ValueError: W&B refuses to start.
        ImportError: a library is not installed.
    """
    makers: dict[str, Callable[[], Tracker]] = {
        "tensorboard": lambda: TensorBoardTracker(run, resumed_at),
        "wandb": lambda: WandbTracker(run),
    }
    return [makers[name]() for name in names]


class TensorBoardTracker:
    """Writes a TensorBoard event file into the run folder."""

    def __init__(self, run: runs.Run, resumed_at: ResumePoint | None = None) -> None:
        """Open a new file; a resumed run drops what it wrote after its checkpoint."""
        first_dropped = None if resumed_at is None else resumed_at.steps + 1
        self._writer = TensorBoardWriter(run.path, first_dropped)

    def on_update(self, row: Row) -> None:
        """Write the metrics of an update."""
        self._writer.add_scalars(update_fields(row), int(row["steps"]))

    def on_evaluation(self, scores: Row) -> None:
        """Write the scores of an evaluation."""
        self._writer.add_scalars(evaluation_fields(scores), int(scores["steps"]))

    def close(self) -> None:
        """Close the file."""
        self._writer.close()


class TensorBoardWriter:
    """TensorBoard event file in a run folder.

    TensorBoard's own writer opens the file per value, in a thread that dies when the disk is full.
    This writer writes the values of a step at once, and a write error reaches the caller.
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
        """Start or continue the W&B run.

        Raises:
            ValueError: W&B refuses to start, for instance without an account.
        """
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

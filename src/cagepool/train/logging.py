"""Logging of a run: metrics.csv, checks.csv and TensorBoard events."""

import os
import socket
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple, Self, TypeAlias

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event, SessionLog  # type: ignore[import-untyped]
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped]

from cagepool import runs
from cagepool.runs.schema import CHECKS_COLUMNS, METRICS_COLUMNS, PROGRESS_COLUMNS
from cagepool.sim.compliance import compliance_summary, episode_compliance
from cagepool.train.config import OrderConfig
from cagepool.train.evaluation import PeriodicScore
from cagepool.train.ppo import Update
from cagepool.train.rollout import FinishedEpisodes

Row: TypeAlias = dict[str, float]


class ResumePoint(NamedTuple):
    """Progress of a run at the checkpoint from which it resumes."""

    update: int
    episodes: int


class RunLogger:
    """Writes one row per update and per evaluation, from the start or the point of resumption."""

    def __init__(
        self, run: runs.Run, order: OrderConfig, resumed_at: ResumePoint | None = None
    ) -> None:
        """Open the files; a resumed run drops what it wrote after its checkpoint."""
        self._order = order
        last_update = None if resumed_at is None else resumed_at.update
        tables = {runs.METRICS: METRICS_COLUMNS, runs.CHECKS: CHECKS_COLUMNS}
        first_dropped = None if resumed_at is None else resumed_at.episodes + 1
        with ExitStack() as stack:  # closes the first files if a later one is damaged
            self._metrics, self._evaluations = (
                stack.enter_context(
                    closing(runs.TableWriter(run.path / name, columns, last_update=last_update))
                )
                for name, columns in tables.items()
            )
            self._tensorboard = TensorBoardWriter(run.path, first_dropped)
            stack.callback(self._tensorboard.close)
            self._files = stack.pop_all()

    def log_update(self, update: Update, seconds: float, other_seconds: float) -> Row:
        """Write the metrics of an update; returns its row."""
        row = _update_row(update) | _compliance_row(update.finished, self._order)
        row |= {"seconds": seconds, "other_seconds": other_seconds}
        self._metrics.append(row)
        names = METRICS_COLUMNS[len(PROGRESS_COLUMNS) :]
        metrics = {f"train/{name}": row.get(name, np.nan) for name in names}
        values = {tag: value for tag, value in metrics.items() if not np.isnan(value)}
        self._tensorboard.add_scalars(values, int(row["episodes"]))
        return row

    def log_evaluation(self, row: Row, score: PeriodicScore, *, is_best: bool) -> None:
        """Write the evaluation after the update of that row."""
        progress = {name: row[name] for name in PROGRESS_COLUMNS}
        self._evaluations.append({**progress, **score._asdict(), "best": float(is_best)})
        values = {"check/score": score.score, "check/return": score.return_mean}
        self._tensorboard.add_scalars(values, int(row["episodes"]))

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

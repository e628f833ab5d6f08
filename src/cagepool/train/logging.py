"""Tables of a run: metrics.csv and checks.csv. Other trackers are in train/tracking.py."""

from contextlib import ExitStack, closing
from typing import NamedTuple, Self, TypeAlias

import numpy as np

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
    steps: int


class RunLogger:
    """Writes one row per update and per evaluation, from the start or the point of resumption."""

    def __init__(
        self, run: runs.Run, order: OrderConfig, resumed_at: ResumePoint | None = None
    ) -> None:
        """Open the files; a resumed run drops what it wrote after its checkpoint."""
        self._order = order
        last_update = None if resumed_at is None else resumed_at.update
        tables = {runs.METRICS: METRICS_COLUMNS, runs.CHECKS: CHECKS_COLUMNS}
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

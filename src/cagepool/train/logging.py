"""What a run writes down while it is under way."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from cagepool import runs
from cagepool.runs.schema import CHECKS_COLUMNS, METRICS_COLUMNS, PROGRESS_COLUMNS
from cagepool.sim.compliance import compliance_summary, episode_compliance
from cagepool.train.evaluation import Check
from cagepool.train.events import Events
from cagepool.train.ppo import Update
from cagepool.train.rollout import Finished

Row = dict[str, float]


class Moment(NamedTuple):
    """How far a run is."""

    update: int
    episodes: int


class Recorder:
    """Tables and TensorBoard events of a run, from its start or from the update it resumes at."""

    def __init__(self, run: runs.Run, resumed_at: Moment | None = None) -> None:
        """Begin, or drop what was written after the moment at which the run resumes."""
        self._settings = run.settings
        until = None if resumed_at is None else resumed_at.update
        self._metrics = runs.TableWriter(
            run.path / runs.METRICS, METRICS_COLUMNS, last_update=until
        )
        self._checks = runs.TableWriter(run.path / runs.CHECKS, CHECKS_COLUMNS, last_update=until)
        dropped = None if resumed_at is None else resumed_at.episodes + 1
        self._events = Events(run.path, dropped)

    def update(self, update: Update, seconds: float, other_seconds: float) -> Row:
        """Write down an update; returns its row."""
        row = _row(update) | _workflow(update.finished, self._settings)
        row |= {"seconds": seconds, "other_seconds": other_seconds}
        self._metrics.append(row)
        self._show(row)
        return row

    def check(self, row: Row, check: Check, *, is_best: bool) -> None:
        """Write down a check of the policy of that row."""
        progress = {name: row[name] for name in PROGRESS_COLUMNS}
        self._checks.append({**progress, **check._asdict(), "best": float(is_best)})
        self._events.add({"check/score": check.score}, int(row["episodes"]))

    def close(self) -> None:
        """Close all files."""
        self._metrics.close()
        self._checks.close()
        self._events.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _show(self, row: Row) -> None:
        shown = ((name, row.get(name, np.nan)) for name in METRICS_COLUMNS[len(PROGRESS_COLUMNS) :])
        values = {f"train/{name}": value for name, value in shown if not np.isnan(value)}
        self._events.add(values, int(row["episodes"]))


def _row(update: Update) -> Row:
    returns, lengths = update.finished.returns, update.finished.lengths
    parts = update.learned.parts
    return {
        "update": update.number,
        "episodes": update.episodes,
        "steps": update.steps,
        "return_mean": float(np.mean(returns)) if returns else np.nan,
        "return_std": float(np.std(returns)) if returns else np.nan,
        "length_mean": float(np.mean(lengths)) if lengths else np.nan,
        "policy_loss": parts.policy,
        "value_loss": parts.value,
        "entropy": parts.entropy,
        "kl": parts.kl,
        "clip_fraction": parts.clip_fraction,
        "explained_variance": update.learned.explained_variance,
        "gradient_norm": update.learned.gradient_norm,
        "learning_rate": update.learning_rate,
        "staleness": update.staleness,
        "replaced": update.replaced,
        "collect_seconds": update.collect_seconds,
        "wait_seconds": update.wait_seconds,
        "update_seconds": update.update_seconds,
    }


def _workflow(finished: Finished, settings: Mapping[str, Any]) -> Row:
    """Compliance of the episodes that ended; `alignment_mean` is their mean alignment reward."""
    if not len(finished.counters):
        return {}
    order = settings["order"]
    shares = episode_compliance(finished.counters, undefined=0.0)
    summary = compliance_summary(finished.counters, order["definition"])
    return {
        "alignment_mean": order["alignment_lambda"] * float(shares.mean()),
        "compliance": summary.compliance,
        "coverage": summary.coverage,
        "decisions": summary.decisions,
        "fixes": summary.fixes,
        "wasted_fixes": summary.wasted_fixes,
    }

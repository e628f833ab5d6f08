"""Tables of a search: decisions.csv (also its state), updates.csv and orders.csv."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from cagepool import runs
from cagepool.runs.schema import (
    DECISIONS,
    ORDERS,
    UPDATES,
    DecisionRow,
    OrderRow,
    UpdateRow,
    WorkflowFile,
)
from cagepool.search.strategy import Observation, Posterior, Proposal, restricted_order
from cagepool.sim.compliance import ALL_ORDERS

# Column of updates.csv: column of the training's metrics.csv.
UPDATE_COLUMNS = {
    "environment_reward": "return_mean",
    "alignment_bonus": "alignment_mean",
    "collection_seconds": "collect_seconds",
    **{name: name for name in ("update", "episodes", "compliance", "coverage")},
    **{name: name for name in ("fixes", "wasted_fixes", "update_seconds")},
}
OUTCOME_COLUMNS = (  # also of workflow.json
    "outcome", "standard_error", "compliance", "coverage", "decisions", "wasted_fixes", "passes",
)  # fmt: skip
RESULT_COLUMNS = ("reward", "standard_error", "compliance", "coverage", "passes", "trainings")
POSTERIOR_COLUMNS = ("mean", "std", "pass_probability", "acquisition")


class Decision(DecisionRow, frozen=True, kw_only=True):
    """One row of decisions.csv: one training, its prediction and its result."""

    @classmethod
    def from_proposal(cls, proposal: Proposal, iteration: int) -> "Decision":
        """The decision to train to the proposed order."""
        number, predicted = proposal.order, proposal.posterior
        order = ALL_ORDERS[number]
        run = training_folder(iteration, order)
        decision = cls(iteration=iteration, order=order, why=proposal.why, run=run)
        if predicted is None:
            return decision
        leading = (f"{ALL_ORDERS[n]} {predicted.acquisition[n]:.3f}" for n in proposal.leading)
        cells = _posterior_cells(predicted, number)
        return replace(decision, top_three="; ".join(leading), **cells)

    @property
    def order_number(self) -> int:
        """Index of the order in `ALL_ORDERS`."""
        return ALL_ORDERS.index(self.order)

    @property
    def observation(self) -> Observation:
        """The result as an observation of the Gaussian process."""
        assert self.reward is not None
        assert self.standard_error is not None
        return Observation(self.reward, self.standard_error, bool(self.passes))

    @property
    def reserved_episodes(self) -> int:
        """Episodes that the training has played, or may play while it is pending."""
        return self.allowance if self.episodes is None else self.episodes

    def with_outcome(self, outcome: WorkflowFile, episodes: int, total: int) -> "Decision":
        """The decision with the result of its training."""
        shared = {name: getattr(outcome, name) for name in OUTCOME_COLUMNS}
        return replace(self, episodes=episodes, total_episodes=total, reward=outcome.mean, **shared)


def write_decisions(folder: Path, decisions: Sequence[Decision]) -> None:
    """Replace decisions.csv atomically."""
    runs.write_rows(folder / DECISIONS, Decision, decisions)


def read_decisions(folder: Path) -> list[Decision]:
    """Read decisions.csv."""
    path = folder / DECISIONS
    if not os.path.lexists(path):  # the search was killed before it wrote the file
        return []
    decisions = runs.read_rows(path, Decision)
    for number, decision in enumerate(decisions):
        if fault := _fault_of(decision, number):
            raise runs.RunFileError(f"{path} is damaged: {fault}")
        if (folder / decision.run).is_symlink():
            raise runs.RunFileError(f"{folder / decision.run} must be a folder, it is a link")
    return decisions


def _fault_of(decision: Decision, number: int) -> str:
    """What is wrong with a row; its run must be a folder inside of the search's."""
    if decision.order not in ALL_ORDERS:
        return f"order must be one of the 120 orders, got {decision.order!r}"
    if decision.iteration != number:
        return f"iteration must be {number}, got {decision.iteration}"
    if not re.fullmatch(r"[\w-]+", decision.run):
        return f"run must be a folder of the search, got {decision.run!r}"
    if decision.inherits is not None and not 0 <= decision.inherits < number:
        return f"inherits must be an earlier iteration, got {decision.inherits}"
    if decision.outcome and None in (
        decision.episodes, decision.total_episodes, decision.reward, decision.standard_error
    ):  # fmt: skip
        return f"iteration {number} must have a result"
    return ""


def training_folder(iteration: int, order: str) -> str:
    """Name of the run folder of a training."""
    return f"{iteration:03d}-{order.replace('>', '-')}"


def write_updates(folder: Path, decisions: Iterable[Decision]) -> None:
    """Write updates.csv: one row per update of every training that has ended."""
    rows: list[UpdateRow] = []
    earlier_episodes = 0
    for decision in decisions:
        metrics = runs.open_run(folder / decision.run).metrics()
        for values in zip(*(metrics[name] for name in UPDATE_COLUMNS.values()), strict=True):
            row: dict[str, Any] = dict(zip(UPDATE_COLUMNS, values, strict=True))
            rows.append(
                UpdateRow(
                    workflow=decision.iteration,
                    order=decision.order,
                    total_episodes=earlier_episodes + int(row["episodes"]),
                    total_reward=row["environment_reward"] + row["alignment_bonus"],
                    **row,
                )
            )
        earlier_episodes = decision.total_episodes or earlier_episodes
    runs.write_rows(folder / UPDATES, UpdateRow, rows)


def write_orders(
    folder: Path,
    results: Mapping[int, Mapping[str, Any]],
    predicted: Posterior | None,
    reached: set[str],
) -> None:
    """Write orders.csv: one row per order, with its equivalence class, result and posterior."""
    rows = [
        OrderRow(
            order=order,
            order_class=restricted_order(order, reached),
            **{name: results.get(number, {}).get(name) for name in RESULT_COLUMNS},
            **_posterior_cells(predicted, number),
        )
        for number, order in enumerate(ALL_ORDERS)
    ]
    runs.write_rows(folder / ORDERS, OrderRow, rows)


def _posterior_cells(predicted: Posterior | None, number: int) -> dict[str, Any]:
    if predicted is None:
        return {}
    return {name: float(getattr(predicted, name)[number]) for name in POSTERIOR_COLUMNS}

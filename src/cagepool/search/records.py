"""Tables of a search: decisions.csv (also its state), updates.csv and orders.csv."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from cagepool import runs
from cagepool.search.folder import DECISIONS, ORDERS, UPDATES
from cagepool.search.gp import Observation, Posterior
from cagepool.search.permutations import restricted_order
from cagepool.search.strategy import Proposal
from cagepool.sim.orders import ALL_ORDERS

# Column of updates.csv: column of the training's metrics.csv.
UPDATE_COLUMNS = {
    "update": "update",
    "episodes": "episodes",
    "environment_reward": "return_mean",
    "alignment_bonus": "alignment_mean",
    "compliance": "compliance",
    "coverage": "coverage",
    "fixes": "fixes",
    "wasted_fixes": "wasted_fixes",
    "collection_seconds": "collect_seconds",
    "update_seconds": "update_seconds",
}
RESULT_COLUMNS = ("reward", "standard_error", "compliance", "coverage", "passes", "trainings")
POSTERIOR_COLUMNS = ("mean", "std", "pass_probability", "acquisition")


@dataclass(frozen=True, kw_only=True)
class Decision:
    """One row of decisions.csv: one training, its prediction and its result."""

    iteration: int
    order: str
    why: str
    mean: float | None = None
    std: float | None = None
    pass_probability: float | None = None
    acquisition: float | None = None
    top_three: str = ""
    run: str = ""
    inherits: int | None = None  # iteration whose last policy is the initial policy
    allowance: int = 0  # episodes that the training may play
    outcome: str = ""  # empty: pending
    episodes: int | None = None
    total_episodes: int | None = None  # of the search, including this training
    reward: float | None = None
    standard_error: float | None = None
    compliance: float | None = None
    coverage: float | None = None
    decisions: float | None = None
    wasted_fixes: float | None = None
    passes: bool | None = None
    repeated: int = 0  # restarts of the training after its node died

    @classmethod
    def from_proposal(cls, proposal: Proposal, iteration: int) -> "Decision":
        """The decision to train to the proposed order."""
        number, predicted = proposal.order, proposal.posterior
        order = ALL_ORDERS[number]
        run = f"{iteration:03d}-{order.replace('>', '-')}"
        decision = cls(iteration=iteration, order=order, why=proposal.why, run=run)
        if predicted is None:
            return decision
        leading = (f"{ALL_ORDERS[n]} {predicted.acquisition[n]:.3f}" for n in proposal.leading)
        return replace(
            decision,
            mean=float(predicted.mean[number]),
            std=float(predicted.std[number]),
            pass_probability=float(predicted.pass_probability[number]),
            acquisition=float(predicted.acquisition[number]),
            top_three="; ".join(leading),
        )

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

    def with_outcome(self, outcome: Mapping[str, Any], episodes: int, total: int) -> "Decision":
        """The decision with the result of its training.

        Args:
            outcome: Contents of the training's workflow.json.
            episodes: Episodes that the training has played.
            total: Episodes that the search has played, including this training.
        """
        copied = ("outcome", "standard_error", "compliance", "coverage", "decisions")
        return replace(
            self,
            episodes=episodes,
            total_episodes=total,
            reward=outcome["mean"],
            wasted_fixes=outcome["wasted_fixes"],
            passes=outcome["passes"],
            **{name: outcome[name] for name in copied},
        )


def write_decisions(folder: Path, decisions: Sequence[Decision]) -> None:
    """Replace decisions.csv atomically."""
    columns = [field.name for field in fields(Decision)]
    _write_table(folder / DECISIONS, columns, map(asdict, decisions))


def read_decisions(folder: Path) -> list[Decision]:
    """Read decisions.csv.

    Raises:
        ValueError: the file is damaged.
    """
    path = folder / DECISIONS
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [_parse_decision(row) for row in csv.DictReader(file, strict=True)]
    except (OSError, csv.Error, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def write_updates(folder: Path, decisions: Iterable[Decision]) -> None:
    """Write updates.csv: one row per update of every training that has ended."""
    columns = ["workflow", "order", "total_episodes", "total_reward", *UPDATE_COLUMNS]
    rows: list[dict[str, Any]] = []
    earlier_episodes = 0
    for decision in decisions:
        metrics = runs.open_run(folder / decision.run).metrics()
        for values in zip(*(metrics[name] for name in UPDATE_COLUMNS.values()), strict=True):
            row = dict(zip(UPDATE_COLUMNS, values, strict=True))
            rows.append(
                {
                    "workflow": decision.iteration,
                    "order": decision.order,
                    "total_episodes": earlier_episodes + int(row["episodes"]),
                    "total_reward": row["environment_reward"] + row["alignment_bonus"],
                    **row,
                }
            )
        earlier_episodes = decision.total_episodes or earlier_episodes
    _write_table(folder / UPDATES, columns, rows)


def write_orders(
    folder: Path,
    results: Mapping[int, Mapping[str, Any]],
    predicted: Posterior | None,
    reached: set[str],
) -> None:
    """Write orders.csv: one row per order, with its equivalence class, result and posterior.

    Args:
        folder: Folder of the search.
        results: Values of `RESULT_COLUMNS` by order number.
        predicted: Posterior after the last training; none without a model.
        reached: Host types that red compromises; orders that agree on them form a class.
    """
    rows = [
        {
            "order": order,
            "class": restricted_order(order, reached),
            **{name: results.get(number, {}).get(name) for name in RESULT_COLUMNS},
            **{
                name: float(getattr(predicted, name)[number]) if predicted else None
                for name in POSTERIOR_COLUMNS
            },
        }
        for number, order in enumerate(ALL_ORDERS)
    ]
    _write_table(folder / ORDERS, ["order", "class", *RESULT_COLUMNS, *POSTERIOR_COLUMNS], rows)


def _write_table(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _as_text(row[name]) for name in columns} for row in rows)
    runs.replace_file(path, text.getvalue().encode())


def _as_text(value: Any) -> str:
    if value is None or value != value:  # noqa: PLR0124 - true for nan
        return ""
    return str(int(value)) if isinstance(value, bool) else str(value)


def _parse_decision(row: Mapping[str, str]) -> Decision:
    integers = ("iteration", "inherits", "allowance", "episodes", "total_episodes")
    strings = ("order", "why", "top_three", "run", "outcome")

    def parse_field(name: str) -> Any:
        if name == "repeated":  # missing in files of older versions
            return int(row.get(name) or 0)
        text = row[name]
        if name in strings:
            return text
        if text == "":
            return None
        return bool(int(text)) if name == "passes" else (int if name in integers else float)(text)

    decision = Decision(**{field.name: parse_field(field.name) for field in fields(Decision)})
    if decision.order not in ALL_ORDERS:
        raise ValueError(f"order must be one of the 120 orders, got {decision.order!r}")
    return decision

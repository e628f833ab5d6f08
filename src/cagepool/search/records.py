"""Tables of a search: its decisions, which are also its state, its updates and its orders."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from cagepool import runs
from cagepool.search.folder import DECISIONS, ORDERS, UPDATES
from cagepool.search.permutations import reduced
from cagepool.search.strategy import Proposal
from cagepool.search.ucb import Observation, Outlook
from cagepool.sim.orders import ALL_ORDERS

# Column of updates.csv: column of a training's metrics.csv.
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


@dataclass(frozen=True, kw_only=True)
class Decision:
    """One training: what was believed of its order before, and what came of it."""

    iteration: int
    order: str
    why: str
    mean: float | None = None
    std: float | None = None
    pass_probability: float | None = None
    acquisition: float | None = None
    top_three: str = ""
    run: str = ""
    inherits: int | None = None  # iteration whose policy it starts from
    allowance: int = 0
    outcome: str = ""  # empty: it is under way
    episodes: int | None = None
    total_episodes: int | None = None  # of the search, with this one
    reward: float | None = None
    standard_error: float | None = None
    compliance: float | None = None
    coverage: float | None = None
    decisions: float | None = None
    wasted_fixes: float | None = None
    passes: bool | None = None
    repeated: int = 0  # times that its node died, and the training was begun anew

    @property
    def number(self) -> int:
        """The number of its order."""
        return ALL_ORDERS.index(self.order)

    @property
    def observation(self) -> Observation:
        """What a model learns from it."""
        assert self.reward is not None
        assert self.standard_error is not None
        return Observation(self.reward, self.standard_error, bool(self.passes))

    @property
    def reserved(self) -> int:
        """Episodes that it has spent, or may spend while it is under way."""
        return self.allowance if self.episodes is None else self.episodes

    def ended(self, outcome: Mapping[str, Any], episodes: int, total: int) -> "Decision":
        """The decision with what came of it, as it stands in the training's folder."""
        taken = ("outcome", "standard_error", "compliance", "coverage", "decisions")
        return replace(
            self,
            episodes=episodes,
            total_episodes=total,
            reward=outcome["mean"],
            wasted_fixes=outcome["wasted_fixes"],
            passes=outcome["passes"],
            **{name: outcome[name] for name in taken},
        )


def decided(proposal: Proposal, iteration: int) -> Decision:
    """A decision to follow a proposal."""
    number, believed = proposal.order, proposal.believed
    order = ALL_ORDERS[number]
    run = f"{iteration:03d}-{order.replace('>', '-')}"
    made = Decision(iteration=iteration, order=order, why=proposal.why, run=run)
    if believed is None:
        return made
    top = (f"{ALL_ORDERS[n]} {believed.acquisition[n]:.3f}" for n in proposal.leading)
    return replace(
        made,
        mean=float(believed.mean[number]),
        std=float(believed.std[number]),
        pass_probability=float(believed.pass_probability[number]),
        acquisition=float(believed.acquisition[number]),
        top_three="; ".join(top),
    )


def write_decisions(folder: Path, decisions: Sequence[Decision]) -> None:
    """Write all decisions, or leave the file as it was."""
    names = [field.name for field in fields(Decision)]
    _write_table(folder / DECISIONS, names, map(asdict, decisions))


def read_decisions(folder: Path) -> list[Decision]:
    """The decisions of a search so far.

    Raises:
        ValueError: the file is damaged.
    """
    path = folder / DECISIONS
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [_decision(row) for row in csv.DictReader(file, strict=True)]
    except (OSError, csv.Error, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def write_updates(folder: Path, decisions: Iterable[Decision]) -> None:
    """Write one row an update of all trainings that have ended."""
    names = ["workflow", "order", "total_episodes", "total_reward", *UPDATE_COLUMNS]
    rows: list[dict[str, Any]] = []
    spent = 0
    for decision in decisions:
        metrics = runs.open_run(folder / decision.run).metrics()
        for values in zip(*(metrics[name] for name in UPDATE_COLUMNS.values()), strict=True):
            row = dict(zip(UPDATE_COLUMNS, values, strict=True))
            rows.append(
                {
                    "workflow": decision.iteration,
                    "order": decision.order,
                    "total_episodes": spent + int(row["episodes"]),
                    "total_reward": row["environment_reward"] + row["alignment_bonus"],
                    **row,
                }
            )
        spent = decision.total_episodes or spent
    _write_table(folder / UPDATES, names, rows)


def write_orders(
    folder: Path, results: Mapping[int, Mapping[str, Any]], believed: Outlook | None, told: set[str]
) -> None:
    """Write a row for each order: what was measured of it, what is believed, and its class.

    Args:
        folder: Of the search.
        results: Reward, standard_error, compliance, coverage, passes and trainings by order.
        believed: The outlook at the end; none without a model.
        told: Types of hosts that red ever holds.
    """
    measured = ("reward", "standard_error", "compliance", "coverage", "passes", "trainings")
    beliefs = ("mean", "std", "pass_probability", "acquisition")
    rows = [
        {
            "order": order,
            "class": reduced(order, told),
            **{name: results.get(number, {}).get(name) for name in measured},
            **{n: float(getattr(believed, n)[number]) if believed else None for n in beliefs},
        }
        for number, order in enumerate(ALL_ORDERS)
    ]
    _write_table(folder / ORDERS, ["order", "class", *measured, *beliefs], rows)


def _write_table(path: Path, names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    text = io.StringIO()
    table = csv.DictWriter(text, names, lineterminator="\n")
    table.writeheader()
    table.writerows({name: _shown(row[name]) for name in names} for row in rows)
    runs.replace_file(path, text.getvalue().encode())


def _shown(value: Any) -> str:
    if value is None or value != value:  # noqa: PLR0124 - nan is not itself
        return ""
    return str(int(value)) if isinstance(value, bool) else str(value)


def _decision(row: Mapping[str, str]) -> Decision:
    whole = ("iteration", "inherits", "allowance", "episodes", "total_episodes")
    words = ("order", "why", "top_three", "run", "outcome")

    def read(name: str) -> Any:
        if name == "repeated":  # which older versions did not count
            return int(row.get(name) or 0)
        text = row[name]
        if name in words:
            return text
        if text == "":
            return None
        return bool(int(text)) if name == "passes" else (int if name in whole else float)(text)

    made = Decision(**{field.name: read(field.name) for field in fields(Decision)})
    if made.order not in ALL_ORDERS:
        raise ValueError(f"an order must be one of the 120, got {made.order!r}")
    return made

"""Early stopping of a training with an order (docs/workflow.md, sections 2 and 4)."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from cagepool.runs.schema import Outcome
from cagepool.train.config import OrderConfig

MIN_RISE = 0.01  # of compliance, that counts as progress


def passes(compliance: float, decisions: float, config: OrderConfig) -> bool:
    """Whether compliance (nan: undefined), with that many decisions per episode, passes.

    A policy that fixes once per episode, at the right moment, makes one decision per episode and
    must not pass: the decisions must exceed `min_decisions`, not equal it.
    """
    return compliance >= config.compliance_threshold and decisions > config.min_decisions


@dataclass
class EarlyStopping:
    """Stops a training when compliance passes the threshold or no longer rises."""

    best: float | None = None  # compliance that the next rise is measured from
    stalled_updates: int = 0
    outcome: Outcome | None = None
    reason: str = ""

    def update(self, row: Mapping[str, float], config: OrderConfig) -> bool:
        """Take the metrics of an update; returns whether to stop.

        Updates in which no episode ended are ignored.
        """
        if math.isnan(row["return_mean"]):
            return False
        compliance, decisions = row.get("compliance", math.nan), row.get("decisions", 0.0)
        if passes(compliance, decisions, config):
            return self._stop(
                "passed",
                f"compliance {compliance:.3f} is at least {config.compliance_threshold:g}, "
                f"with {decisions:.1f} decisions per episode",
            )
        if compliance >= (-math.inf if self.best is None else self.best + MIN_RISE):
            self.best, self.stalled_updates = compliance, 0
            return False
        self.stalled_updates += 1
        if self.stalled_updates < config.patience:
            return False
        risen = (
            "has been undefined" if self.best is None else f"has not risen above {self.best:.3f}"
        )
        updates = self.stalled_updates
        return self._stop("stalled", f"compliance {risen} by {MIN_RISE:g} for {updates} updates")

    def finish(self, row: Mapping[str, float], *, enabled: bool) -> None:
        """Set the outcome of a training that has played all episodes."""
        if not enabled:
            self._stop("fixed", f"all {row['episodes']:,.0f} episodes are played")
        elif self.outcome is None:
            self._stop("spent", f"{row['episodes']:,.0f} episodes are spent without passing")

    def as_dict(self) -> dict[str, Any]:
        """State by its names in a checkpoint."""
        state = asdict(self)
        return {"still" if name == "stalled_updates" else name: state[name] for name in state}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        """Restore the state in a checkpoint."""
        return cls(**{"stalled_updates" if n == "still" else n: v for n, v in state.items()})

    def _stop(self, outcome: Outcome, reason: str) -> bool:
        self.outcome, self.reason = outcome, reason
        return True

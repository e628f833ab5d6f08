"""When a policy keeps its order, or learns no more of it (docs/workflow.md, 2 and 4)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from cagepool.runs.schema import Outcome
from cagepool.train.config import OrderConfig

RISE = 0.01  # of compliance, below which it has not risen


def passes(compliance: float, decisions: float, config: OrderConfig) -> bool:
    """Whether a batch with this compliance, undefined if nan, and decisions an episode passes.

    One fix an episode, at the right moment, makes one decision in each and must not pass: so there
    have to be more than `min_decisions`, not just as many.
    """
    return compliance >= config.compliance_threshold and decisions > config.min_decisions


@dataclass
class Gate:
    """Watches the batches of a run; its fields are all that a resumed run must remember."""

    best: float | None = None  # compliance from which a rise is counted
    still: int = 0  # updates since
    outcome: Outcome | None = None
    reason: str = ""

    def judge(self, row: Mapping[str, float], config: OrderConfig) -> bool:
        """Look at the episodes that ended in an update; whether training is to end.

        Updates in which no episode ended say nothing and do not count.
        """
        if math.isnan(row["return_mean"]):
            return False
        compliance, decisions = row.get("compliance", math.nan), row.get("decisions", 0.0)
        if passes(compliance, decisions, config):
            return self._end(
                "passed",
                f"compliance {compliance:.3f} is at least {config.compliance_threshold:g}, "
                f"with {decisions:.1f} decisions an episode",
            )
        if compliance >= (-math.inf if self.best is None else self.best + RISE):
            self.best, self.still = compliance, 0
            return False
        self.still += 1
        if self.still < config.patience:
            return False
        risen = (
            "has been undefined" if self.best is None else f"has not risen above {self.best:.3f}"
        )
        return self._end("stalled", f"compliance {risen} by {RISE:g} for {self.still} updates")

    def finish(self, row: Mapping[str, float], *, gated: bool) -> None:
        """All episodes have been played."""
        if not gated:
            self._end("fixed", f"all {row['episodes']:,.0f} episodes are played")
        elif self.outcome is None:
            self._end("spent", f"{row['episodes']:,.0f} episodes are spent without passing")

    def _end(self, outcome: Outcome, reason: str) -> bool:
        self.outcome, self.reason = outcome, reason
        return True

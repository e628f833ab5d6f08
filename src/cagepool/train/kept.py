"""How an order was kept in a batch of episodes (docs/workflow.md, section 2)."""

from typing import cast

import numpy as np

from cagepool.sim.batch import COUNTERS
from cagepool.types import Float64s, Int64s


def order_kept(counters: Int64s, definition: str) -> dict[str, float]:
    """Compliance, coverage and counts of episodes, (episode, COUNTER_COUNT); nan if undefined."""
    by_name = dict(zip(COUNTERS, counters.T, strict=True))
    decided = by_name["compliant"] + by_name["violations"]
    decisions, threats = int(decided.sum()), int(by_name["threat_steps"].sum())
    if definition == "seed":
        # The older definition: a batch is the plain mean of its episodes, half for no fix at all.
        shares = np.where(decided > 0, by_name["compliant"] / np.maximum(decided, 1), 0.5)
        compliance = float(shares.mean())
    else:
        compliance = int(by_name["compliant"].sum()) / decisions if decisions else np.nan
    return {
        "compliance": compliance,
        "coverage": decisions / threats if threats else np.nan,
        "decisions": decisions / len(counters),
        "fixes": float(by_name["fixes"].sum()),
        "wasted_fixes": float(by_name["wasted"].sum()),
    }


def kept_shares(counters: Int64s) -> Float64s:
    """Compliance of each episode at its end, 0 where nothing was decided."""
    compliant, violations = counters[:, 0], counters[:, 1]
    return cast("Float64s", compliant / np.maximum(compliant + violations, 1))

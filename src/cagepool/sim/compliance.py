"""Workflow orders and compliance with them (docs/workflow.md, sections 1 to 3).

An order says in which order host types are repaired.

The core counts decisions inside its step. `ComplianceTracker` counts the same decisions from true
states, for games that CybORG or a worker process plays. `compliance_summary` computes the
compliance of a batch of episodes from the counters of either; training, evaluation and search
report that number.
"""

import math
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from cagepool import _core
from cagepool.scenarios import CAGE2, Layout, Scenario
from cagepool.scenarios.vocabulary import HOST_TYPES
from cagepool.sim.masks import action_table, slot_tables
from cagepool.types import Bools, Float64s, Int32s, Int64s, Records

NAMED_ORDERS = {
    "critical_first": "defender>op_server>enterprise>op_host>user",
    "enterprise_focus": "enterprise>defender>op_server>op_host>user",
    "user_priority": "user>defender>enterprise>op_server>op_host",
    "operational_focus": "op_server>op_host>defender>enterprise>user",
    "balanced": "defender>enterprise>op_server>user>op_host",
    "reverse": "user>op_host>enterprise>op_server>defender",
}
ALL_ORDERS = tuple(">".join(order) for order in permutations(HOST_TYPES))
assert len(ALL_ORDERS) == _core.ORDER_COUNT


def parse_order(order: str) -> tuple[str, ...]:
    """Host types of a named or written-out order, most urgent first; joined by , or >."""
    types = tuple(NAMED_ORDERS.get(order, order).replace(",", ">").split(">"))
    faults = [f"unknown {name!r}" for name in types if name not in HOST_TYPES]
    faults += [f"repeated {name!r}" for name in HOST_TYPES if types.count(name) > 1]
    faults += [f"missing {name!r}" for name in HOST_TYPES if name not in types]
    if faults:
        known = f"one of {', '.join(NAMED_ORDERS)}, or all of {', '.join(HOST_TYPES)} joined by ,"
        raise ValueError(f"an order must be {known}; got {order!r} ({', '.join(faults)})")
    return types


def order_number(order: str) -> int:
    """Index of an order in `ALL_ORDERS`, by which the core knows it."""
    return ALL_ORDERS.index(">".join(parse_order(order)))


def host_roles(scenario: Scenario, definition: str) -> tuple[str | None, ...]:
    """Type of each host for orders; in the older definition red's entry is a user host."""
    roles = [*scenario.roles]
    if definition == "fix-type":
        roles[scenario.entry] = roles[scenario.entry] or "user"
    return tuple(roles)


COUNTERS = ("compliant", "violations", "wasted", "fixes", "threat_steps")
assert len(COUNTERS) == _core.COUNTER_COUNT
COMPLIANT, VIOLATIONS, WASTED, FIXES, THREAT_STEPS = range(len(COUNTERS))
NO_FIX_COMPLIANCE = 0.5  # of an episode without a fix, by the older definition
_NO_HOST = -1
_THREAT_FIELD = {"true": "access", "observed": "compromised"}  # of the true state, by knowledge


def _fixed_hosts(scenario: Scenario, layout: Layout) -> Int64s:
    """Host that each action of a layout fixes; -1: none."""
    table = action_table(layout)
    kinds = [kind in ("Remove", "Restore") for kind in layout.kinds]
    has_kind = np.array([kind in scenario.action_kinds for kind in layout.kinds])
    host_of_slot = slot_tables((scenario,), layout).host_of_slot[0]
    is_fix = (np.array(kinds) & has_kind)[table.kinds]
    return np.where(is_fix, host_of_slot[table.slots], _NO_HOST)


@dataclass(frozen=True)
class ComplianceSummary:
    """Compliance of a batch of episodes with a workflow order."""

    compliance: float  # nan: blue decided nothing
    coverage: float  # nan: no host was ever threatened
    decisions: float  # per episode
    fixes: int  # of all episodes
    wasted_fixes: int  # of all episodes
    episodes: int

    def as_dict(self) -> dict[str, float | None]:
        """Values for JSON: undefined shares are None, counts are per episode."""
        return {
            "compliance": None if math.isnan(self.compliance) else self.compliance,
            "coverage": None if math.isnan(self.coverage) else self.coverage,
            "decisions": self.decisions,
            "wasted_fixes": self.wasted_fixes / self.episodes,
        }


def compliance_summary(counters: NDArray[np.integer], definition: str) -> ComplianceSummary:
    """Compliance of at least one episode, from its counters at the end, (episodes, COUNTER_COUNT).

    Args:
        counters: One row of `COUNTERS` per episode.
        definition: `host`: the share of all decisions that were compliant. `fix-type`, the
            older definition: the unweighted mean over episodes, 0.5 for one without a fix.
    """
    totals = counters.sum(axis=0, dtype=np.int64)
    decisions = int(totals[COMPLIANT] + totals[VIOLATIONS])
    threat_steps = int(totals[THREAT_STEPS])
    if definition == "fix-type":
        compliance = float(episode_compliance(counters, undefined=NO_FIX_COMPLIANCE).mean())
        threat_fixes = decisions - int(totals[WASTED])  # a wasted fix counts as compliant
    else:
        compliance = int(totals[COMPLIANT]) / decisions if decisions else math.nan
        threat_fixes = decisions
    return ComplianceSummary(
        compliance=compliance,
        coverage=threat_fixes / threat_steps if threat_steps else math.nan,
        decisions=decisions / len(counters),
        fixes=int(totals[FIXES]),
        wasted_fixes=int(totals[WASTED]),
        episodes=len(counters),
    )


def episode_compliance(counters: NDArray[np.integer], *, undefined: float) -> Float64s:
    """Compliance of each episode; `undefined` where blue decided nothing."""
    decisions = counters[:, COMPLIANT] + counters[:, VIOLATIONS]
    shares = counters[:, COMPLIANT] / np.maximum(decisions, 1)
    return np.where(decisions > 0, shares, undefined)


class ComplianceTracker:
    """Counts decisions and pays the alignment reward as the core does, from true states."""

    def __init__(  # noqa: PLR0913 - those of the batch, and the scenario
        self,
        games: int,
        order: str,
        *,
        knowledge: str,
        definition: str,
        alignment: float,
        scenario: Scenario = CAGE2,
        layout: Layout | None = None,
    ) -> None:
        """Start counting; all games follow one order in one scenario.

        The settings are those of `BatchConfig`; the layout is that of the actions.
        """
        self.counters: Int32s = np.zeros((games, _core.COUNTER_COUNT), np.int32)
        self.alignment: Float64s = np.zeros(games)  # reward of the last action
        self._threat_field = _THREAT_FIELD[knowledge]
        self._by_fix_type = definition == "fix-type"
        self._lambda = alignment
        # The core's grid, on which sums over an episode are exact (cpp/core/compliance.hpp).
        self._grid = 2.0 ** (math.frexp(alignment)[1] - 45) if alignment else 1.0
        roles = host_roles(scenario, definition)
        has_type = np.array([[role == kind for role in roles] for kind in HOST_TYPES])
        self._has_type: Bools = np.asarray(has_type.any(axis=0))
        self._fixed_hosts = _fixed_hosts(scenario, layout or Layout.of((scenario,)))
        ranked = [HOST_TYPES.index(kind) for kind in parse_order(order)]
        self._hosts_by_rank: Bools = has_type[ranked]  # (rank in the order, host)

    def update(self, states: Records, actions: Int64s) -> None:
        """Count one action per game by the true state before that action."""
        hosts = len(self._has_type)
        threatened: Bools = np.greater(states[self._threat_field][:, :hosts], 0) & self._has_type
        threatened_ranks: Bools = np.greater(threatened.astype(np.int64) @ self._hosts_by_rank.T, 0)
        has_top: Bools = np.any(threatened_ranks, axis=1)
        in_top_type = self._hosts_by_rank[threatened_ranks.argmax(axis=1)] & has_top[:, None]
        targets = self._fixed_hosts[actions]
        is_fix = targets != _NO_HOST
        games = np.arange(len(actions))
        on_top = in_top_type[games, targets]
        is_compliant = (
            on_top | ~has_top if self._by_fix_type else on_top & threatened[games, targets]
        )
        on_foothold = is_fix & ~self._has_type[targets]  # no type: never threatened
        before = self._scaled_compliance()
        self.counters[:, THREAT_STEPS] += has_top
        self.counters[:, FIXES] += is_fix
        self.counters[:, COMPLIANT] += is_fix & is_compliant
        self.counters[:, VIOLATIONS] += is_fix & has_top & ~is_compliant
        self.counters[:, WASTED] += is_fix & (~has_top | on_foothold)
        self.alignment = self._scaled_compliance() - before

    def end_episodes(self, games: Int64s) -> Int32s:
        """Return the counters of games whose episode has ended, and reset them."""
        counters = self.counters[games]
        self.counters[games] = 0
        return counters

    def _scaled_compliance(self) -> Float64s:
        """Lambda times the running compliance, 0 before the first decision."""
        compliant, violations = self.counters[:, COMPLIANT], self.counters[:, VIOLATIONS]
        scaled = self._lambda * compliant / np.maximum(compliant + violations, 1)
        result: Float64s = np.rint(scaled / self._grid) * self._grid
        return result

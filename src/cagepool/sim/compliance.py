"""Compliance judged outside the core, from true states: for games that CybORG or a worker plays."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cagepool import _core
from cagepool.sim import orders
from cagepool.sim.batch import COUNTERS
from cagepool.sim.names import ACTIONS, HOST_TYPE, HOST_TYPES, HOSTS, host_index
from cagepool.types import Bools, Float64s, Int64s, Records

USER0 = host_index("User0")
NO_FIX = -1
SHOWN_IN = {"true": "access", "observed": "compromised"}  # column of the true state, by knowledge
COMPLIANT, VIOLATIONS, WASTED, FIXES, THREAT_STEPS = range(len(COUNTERS))


def _fixed_host(action: str) -> int:
    kind, _, host = action.partition(" ")
    return host_index(host) if kind in ("Remove", "Restore") else NO_FIX


FIXED = np.array([_fixed_host(action) for action in ACTIONS])  # host that each action fixes


class Judge:
    """Counts and rewards what the core would (docs/workflow.md, 2 and 3), one look per step."""

    def __init__(
        self, games: int, order: str, *, knowledge: str, definition: str, alignment: float
    ) -> None:
        """Judge this many games, all to one order."""
        self.counters = np.zeros((games, _core.COUNTER_COUNT), np.int32)
        self.alignment: Float64s = np.zeros(games)  # of the last action seen
        self._column = SHOWN_IN[knowledge]
        self._is_seed = definition == "seed"
        self._lambda = alignment
        # The core's grid, on which sums of an episode are exact (cpp/core/compliance.hpp).
        self._grid = 2.0 ** (math.frexp(alignment)[1] - 45) if alignment else 1.0
        members = np.array([[HOST_TYPE[host] == kind for host in HOSTS] for kind in HOST_TYPES])
        if not self._is_seed:
            members[:, USER0] = False
        ranked = [HOST_TYPES.index(name) for name in orders.parse(order)]
        self._members: Bools = members[ranked]  # (position, host)

    def see(self, states: Records, actions: Int64s) -> None:
        """Judge actions by the true states before they are played."""
        threatened: Bools = np.greater(states[self._column], 0)
        if not self._is_seed:
            threatened[:, USER0] = False
        by_position: Bools = np.greater(threatened.astype(np.int64) @ self._members.T, 0)
        has_top: Bools = np.any(by_position, axis=1)
        in_top = self._members[by_position.argmax(axis=1)] & has_top[:, None]
        targets = FIXED[actions]
        is_fix = targets != NO_FIX
        rows = np.arange(len(actions))
        on_top = in_top[rows, targets]
        kept = on_top | ~has_top if self._is_seed else on_top & threatened[rows, targets]
        on_foothold = np.logical_and(targets == USER0, not self._is_seed)
        before = self._scaled()
        self.counters[:, THREAT_STEPS] += has_top
        self.counters[:, FIXES] += is_fix
        self.counters[:, COMPLIANT] += is_fix & kept
        self.counters[:, VIOLATIONS] += is_fix & has_top & ~kept
        self.counters[:, WASTED] += is_fix & (~has_top | on_foothold)
        self.alignment = self._scaled() - before

    def take(self, ended: Int64s) -> NDArray[Any]:
        """Counters of episodes that have ended, which begin anew."""
        counters = self.counters[ended]
        self.counters[ended] = 0
        return counters

    def _scaled(self) -> Float64s:
        """Lambda times the running compliance, 0 before the first decision."""
        decisions = self.counters[:, COMPLIANT] + self.counters[:, VIOLATIONS]
        share = self._lambda * self.counters[:, COMPLIANT] / np.maximum(decisions, 1)
        result: Float64s = np.rint(share / self._grid) * self._grid
        return result

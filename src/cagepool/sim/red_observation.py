"""Observations and action masks of a learning red agent (docs/integrations.md)."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cagepool import _core
from cagepool.scenarios import Scenario
from cagepool.sim import dtypes
from cagepool.sim.batch import Batch
from cagepool.sim.names import EXPLOITS
from cagepool.types import Bools, Float32s, Int64s, Records

HOST_FEATURES = ("address", "name", "scanned", *EXPLOITS, "user", "privileged")
"""Values per host: red's knowledge of the host, ports by their exploits, and red's access."""
GAME_FEATURES = ("OTService", "failed", "succeeded")
"""Values after those of hosts and subnets: red knows the service, and its last success."""
_HOST_KINDS = (_core.RedKind.SCAN, _core.RedKind.EXPLOIT, _core.RedKind.ESCALATE)
# Bits of a trace's s_red_ports; bit 8: the host was scanned.
_PORT_BITS = np.array([8, *range(len(EXPLOITS))])


class RedSpace:
    """Sizes of red's observations and actions in several scenarios, padded to the largest.

    Both are by host and subnet of the game's own scenario: names are those of
    `Scenario.red_actions`.
    """

    def __init__(
        self, hosts: int, subnets: int, actions: Sequence[tuple[_core.RedKind, int]]
    ) -> None:
        """Take the numbers of hosts and subnets, and kind and target of every action."""
        self.hosts, self.subnets = hosts, subnets
        self.actions = len(actions)
        self.observation_size = hosts * len(HOST_FEATURES) + subnets + len(GAME_FEATURES)
        # Without action 0, Sleep, which needs no knowledge.
        self.knowledge_columns = np.array([self._knowledge_column(*one) for one in actions[1:]])

    def _knowledge_column(self, kind: _core.RedKind, target: int) -> int:
        """Column of the observation that is 1 if red knows the target of an action."""
        if kind == _core.RedKind.SWEEP:
            return self.hosts * len(HOST_FEATURES) + target
        value = "address" if kind in (_core.RedKind.SCAN, _core.RedKind.EXPLOIT) else "name"
        return target * len(HOST_FEATURES) + HOST_FEATURES.index(value)


class RedObservations(NamedTuple):
    """Observations and action masks of red in every game."""

    observations: Float32s  # (games, RedSpace.observation_size), of 0 and 1
    masks: Bools  # (games, RedSpace.actions), false where red does not know the target


def red_space(batch: Batch) -> RedSpace:
    """Sizes of red's observations and actions in the games of a batch."""
    return _space_of(batch.scenarios)


@lru_cache(maxsize=16)
def _space_of(scenarios: tuple[Scenario, ...]) -> RedSpace:
    hosts = max(len(scenario.hosts) for scenario in scenarios)
    subnets = max(len(scenario.subnets) for scenario in scenarios)
    impacted = {host for scenario in scenarios for host in np.flatnonzero(scenario.ot).tolist()}
    actions = [
        (_core.RedKind.SLEEP, -1),
        *((_core.RedKind.SWEEP, subnet) for subnet in range(subnets)),
        *product(_HOST_KINDS, range(hosts)),
        *((_core.RedKind.IMPACT, host) for host in sorted(impacted)),
    ]
    return RedSpace(hosts, subnets, actions)


def red_observations(batch: Batch) -> RedObservations:
    """Red's current knowledge and access.

    `HOST_FEATURES` host by host, whether red knows each subnet, then `GAME_FEATURES`.

    Masked actions always fail. All others are those that CybORG allows its red agents.
    """
    space = red_space(batch)
    observations = _observations(batch, space)
    masks = np.ones((batch.games, space.actions), np.bool_)
    np.not_equal(observations.take(space.knowledge_columns, 1), 0, out=masks[:, 1:])
    return RedObservations(observations, masks)


def red_knowledge(batch: Batch) -> Int64s:
    """What red knows of each host, (games, hosts): 0 nothing, 1 the address, 2 the ports."""
    rows = _trace_rows(batch)
    hosts = batch.true_state["access"].shape[1]
    known: Int64s = np.where(rows["s_red_ports"] != 0, 2, rows["s_known_ip"]).astype(np.int64)
    return known[:, :hosts]


def _trace_rows(batch: Batch) -> Records:
    """State of every game as in a trace."""
    rows = np.zeros(batch.games, dtypes.TRACE_ROW)
    batch.core.write_trace_rows(dtypes.as_bytes(rows))
    return rows


def _observations(batch: Batch, space: RedSpace) -> Float32s:
    rows = _trace_rows(batch)
    count = space.hosts
    result = np.empty((batch.games, space.observation_size), np.float32)
    known = result[:, count * len(HOST_FEATURES) :]  # subnets, the service, and the last success
    hosts = result[:, : -known.shape[1]].reshape(batch.games, count, len(HOST_FEATURES))
    hosts[:, :, 0] = rows["s_known_ip"][:, :count]
    hosts[:, :, 1] = rows["s_known_host"][:, :count]
    hosts[:, :, 2:-2] = rows["s_red_ports"][:, :count, None] >> _PORT_BITS & 1
    hosts[:, :, -2:] = batch.true_state["access"][:, :count, None] == (1, 2)
    known[:, : space.subnets] = rows["s_known_net"][:, : space.subnets]
    known[:, space.subnets] = batch.true_state["ot_service_known"]
    known[:, space.subnets + 1 :] = _last_success(batch)[:, None] == (0, 1)
    return result


def _last_success(batch: Batch) -> NDArray[np.int8]:
    """Success of red's last action: 1, 0, or -1 if red has not acted or slept."""
    success: NDArray[np.int8] = batch.moves["red_success"]
    if batch.config.autoreset != "same_step":
        return success
    # After an autoreset, `moves` are those of the episode that ended.
    return np.where(batch.truncations, np.int8(-1), success)

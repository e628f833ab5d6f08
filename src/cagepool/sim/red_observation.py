"""What a learning red sees, and which of its actions the game takes (docs/integrations.md)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cagepool import _core
from cagepool.sim import dtypes
from cagepool.sim.batch import Batch
from cagepool.sim.names import EXPLOITS, SUBNETS
from cagepool.types import Bools, Float32s, Records

OF_HOST = ("address", "name", "scanned", *EXPLOITS, "user", "privileged")
"""Values of each host: what red knows of it, ports by their exploits, and what red holds there."""
OF_GAME = (*SUBNETS, "OTService", "failed", "succeeded")
"""Values after those of the hosts: subnets and service that red knows, and its last action."""
RED_OBSERVATION_SIZE = _core.HOST_COUNT * len(OF_HOST) + len(OF_GAME)


def _place(action: int) -> int:
    """Where in an observation it stands whether red knows what an action names."""
    kind, target = _core.red_action(action)
    if kind == _core.RedKind.SWEEP:
        return _core.HOST_COUNT * len(OF_HOST) + OF_GAME.index(SUBNETS[target])
    value = "address" if kind in (_core.RedKind.SCAN, _core.RedKind.EXPLOIT) else "name"
    return target * len(OF_HOST) + OF_HOST.index(value)


_PLACES = np.array([_place(action) for action in range(1, _core.RED_ACTION_COUNT)])  # 0: Sleep
_PORT_BITS = np.array([8, *range(len(EXPLOITS))])  # of a trace's s_red_ports; 8: scanned at all


class RedSight(NamedTuple):
    """What red sees in every game."""

    observations: Float32s  # (games, RED_OBSERVATION_SIZE), of 0 and 1
    masks: Bools  # (games, RED_ACTION_COUNT), false where an action names what red does not know


def red_sight(batch: Batch) -> RedSight:
    """What red knows and holds now: host by host `OF_HOST`, then `OF_GAME`.

    Actions that the masks leave out always fail; all others are what CybORG lets its agents do.
    """
    known = np.zeros(batch.games, dtypes.TRACE_ROW)
    batch.core.write_trace_rows(dtypes.as_bytes(known))
    observations = _observations(batch, known)
    masks = np.ones((batch.games, _core.RED_ACTION_COUNT), np.bool_)
    np.not_equal(observations.take(_PLACES, 1), 0, out=masks[:, 1:])
    return RedSight(observations, masks)


def _observations(batch: Batch, known: Records) -> Float32s:
    rows = np.empty((batch.games, RED_OBSERVATION_SIZE), np.float32)
    hosts = rows[:, : -len(OF_GAME)].reshape(batch.games, _core.HOST_COUNT, len(OF_HOST))
    hosts[:, :, 0] = known["s_known_ip"]
    hosts[:, :, 1] = known["s_known_host"]
    hosts[:, :, 2:-2] = known["s_red_ports"][:, :, None] >> _PORT_BITS & 1
    hosts[:, :, -2:] = batch.true_state["access"][:, :, None] == (1, 2)
    rows[:, -6:-3] = known["s_known_net"]
    rows[:, -3] = batch.true_state["ot_service_known"]
    rows[:, -2:] = _last_success(batch)[:, None] == (0, 1)
    return rows


def _last_success(batch: Batch) -> NDArray[np.int8]:
    """Of red's last action: 1, 0, or -1 if it has none yet or slept."""
    success: NDArray[np.int8] = batch.moves["red_success"]
    if batch.config.autoreset != "same_step":
        return success
    return np.where(batch.truncations, np.int8(-1), success)  # that was in the episode before

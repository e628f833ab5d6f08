"""Observations and action masks of a learning red agent (docs/integrations.md)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cagepool import _core
from cagepool.sim import dtypes
from cagepool.sim.batch import Batch
from cagepool.sim.names import EXPLOITS, SUBNETS
from cagepool.types import Bools, Float32s, Records

HOST_FEATURES = ("address", "name", "scanned", *EXPLOITS, "user", "privileged")
"""Values per host: red's knowledge of the host, ports by their exploits, and red's access."""
GAME_FEATURES = (*SUBNETS, "OTService", "failed", "succeeded")
"""Values after those of the hosts: subnets and service that red knows, and its last success."""
RED_OBSERVATION_SIZE = _core.HOST_COUNT * len(HOST_FEATURES) + len(GAME_FEATURES)


def _knowledge_column(action: int) -> int:
    """Column of the observation that is 1 if red knows the target of an action."""
    kind, target = _core.red_action(action)
    if kind == _core.RedKind.SWEEP:
        return _core.HOST_COUNT * len(HOST_FEATURES) + GAME_FEATURES.index(SUBNETS[target])
    value = "address" if kind in (_core.RedKind.SCAN, _core.RedKind.EXPLOIT) else "name"
    return target * len(HOST_FEATURES) + HOST_FEATURES.index(value)


# Without action 0, Sleep, which needs no knowledge.
_KNOWLEDGE_COLUMNS = np.array(
    [_knowledge_column(action) for action in range(1, _core.RED_ACTION_COUNT)]
)
# Bits of a trace's s_red_ports; bit 8: the host was scanned.
_PORT_BITS = np.array([8, *range(len(EXPLOITS))])


class RedObservations(NamedTuple):
    """Observations and action masks of red in every game."""

    observations: Float32s  # (games, RED_OBSERVATION_SIZE), of 0 and 1
    masks: Bools  # (games, RED_ACTION_COUNT), false where red does not know the target


def red_observations(batch: Batch) -> RedObservations:
    """Red's current knowledge and access: `HOST_FEATURES` host by host, then `GAME_FEATURES`.

    Masked actions always fail. All others are those that CybORG allows its red agents.
    """
    rows = np.zeros(batch.games, dtypes.TRACE_ROW)
    batch.core.write_trace_rows(dtypes.as_bytes(rows))
    observations = _observations(batch, rows)
    masks = np.ones((batch.games, _core.RED_ACTION_COUNT), np.bool_)
    np.not_equal(observations.take(_KNOWLEDGE_COLUMNS, 1), 0, out=masks[:, 1:])
    return RedObservations(observations, masks)


def _observations(batch: Batch, trace_rows: Records) -> Float32s:
    result = np.empty((batch.games, RED_OBSERVATION_SIZE), np.float32)
    hosts = result[:, : -len(GAME_FEATURES)].reshape(
        batch.games, _core.HOST_COUNT, len(HOST_FEATURES)
    )
    hosts[:, :, 0] = trace_rows["s_known_ip"]
    hosts[:, :, 1] = trace_rows["s_known_host"]
    hosts[:, :, 2:-2] = trace_rows["s_red_ports"][:, :, None] >> _PORT_BITS & 1
    hosts[:, :, -2:] = batch.true_state["access"][:, :, None] == (1, 2)
    result[:, -6:-3] = trace_rows["s_known_net"]
    result[:, -3] = batch.true_state["ot_service_known"]
    result[:, -2:] = _last_success(batch)[:, None] == (0, 1)
    return result


def _last_success(batch: Batch) -> NDArray[np.int8]:
    """Success of red's last action: 1, 0, or -1 if red has not acted or slept."""
    success: NDArray[np.int8] = batch.moves["red_success"]
    if batch.config.autoreset != "same_step":
        return success
    # After an autoreset, `moves` are those of the episode that ended.
    return np.where(batch.truncations, np.int8(-1), success)

"""The official reward (docs/rules.md, section 9), split into parts with the weights of the core."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cagepool import _core
from cagepool.sim.names import HOSTS, action_index
from cagepool.types import Int64s

REWARD_PARTS = ("user_hosts", "servers", "impact", "restores", "other")
"""Parts of a reward: red's privileged access to User1 to User4, to the servers of the enterprise
and Op_Server0, the outage of OTService, blue's Restores, and red's privileged access elsewhere."""

RESTORES = [action_index(f"Restore {host}") for host in HOSTS]
_IMPACT = REWARD_PARTS.index("impact")
_RESTORES = REWARD_PARTS.index("restores")
_SERVERS = ("Enterprise0", "Enterprise1", "Enterprise2", "Op_Server0")


def _part_of_host(host: str) -> str:
    if host in _SERVERS:
        return "servers"
    return "user_hosts" if host.startswith("User") else "other"


_HOST_TENTHS: Int64s = np.zeros((_core.HOST_COUNT, len(REWARD_PARTS)), np.int64)
for _host, (_name, _loss) in enumerate(zip(HOSTS, _core.host_loss_tenths(), strict=True)):
    _HOST_TENTHS[_host, REWARD_PARTS.index(_part_of_host(_name))] = -_loss

_RESTORE_FLAGS: Int64s = np.zeros(_core.ACTION_COUNT, np.int64)
_RESTORE_FLAGS[RESTORES] = 1


def part_tenths(privileged: ArrayLike, outages: ArrayLike, restores: ArrayLike) -> Int64s:
    """Rewards in tenths, (…, 5), by part; their sum is exactly the official reward.

    The arguments are counts of steps, or flags of a single step.

    Args:
        privileged: Steps in which red was privileged on each host, (…, HOST_COUNT).
        outages: Steps in which OTService did not run, (…).
        restores: Uses of Restore, (…).
    """
    tenths: Int64s = np.asarray(privileged, np.int64) @ _HOST_TENTHS
    tenths[..., _IMPACT] = -_core.OUTAGE_TENTHS * np.asarray(outages, np.int64)
    tenths[..., _RESTORES] = -_core.RESTORE_TENTHS * np.asarray(restores, np.int64)
    return tenths


def step_part_tenths(true_state: NDArray[np.void], moves: NDArray[np.void]) -> Int64s:
    """Rewards of one step in tenths, (games, 5), by part.

    Args:
        true_state: The true states after the step, before an autoreset.
        moves: The moves of the step.
    """
    return part_tenths(
        true_state["privileged"] != 0,
        true_state["ot_running"] == 0,
        _RESTORE_FLAGS[moves["blue_action"]],
    )

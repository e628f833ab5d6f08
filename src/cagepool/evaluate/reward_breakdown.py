"""Where the loss goes: the reward of docs/rules.md, section 9, taken apart."""

from collections.abc import Iterable

import numpy as np

from cagepool.sim.names import HOSTS, action_index, host_index
from cagepool.types import Int64s

PARTS = ("user_hosts", "servers", "impact", "restores", "other")

USER_HOSTS = ("User1", "User2", "User3", "User4")
SERVERS = ("Enterprise0", "Enterprise1", "Enterprise2", "Op_Server0")
OTHERS = ("Defender", "Op_Host0", "Op_Host1", "Op_Host2")
# Tenths that a step costs.
USER_HOST_COST = OTHER_COST = 1
SERVER_COST = RESTORE_COST = 10
IMPACT_COST = 100

RESTORES = [action_index(f"Restore {host}") for host in HOSTS]


def loss_parts(held: Int64s, stopped: int, uses: Int64s) -> dict[str, int]:
    """Tenths lost, by part; their sum is the loss of the games exactly.

    Args:
        held: Steps in which red was privileged on each host, (HOST_COUNT,).
        stopped: Steps in which OTService did not run.
        uses: How often each action was played, (ACTION_COUNT,).
    """
    return {
        "user_hosts": USER_HOST_COST * _on(USER_HOSTS, held),
        "servers": SERVER_COST * _on(SERVERS, held),
        "impact": IMPACT_COST * stopped,
        "restores": RESTORE_COST * int(uses[RESTORES].sum()),
        "other": OTHER_COST * _on(OTHERS, held),
    }


def _on(names: Iterable[str], steps: Int64s) -> int:
    return int(np.sum([steps[host_index(name)] for name in names]))

"""Reward by cause: the terms of docs/rules.md, section 9, with the weights of the core."""

from collections.abc import Iterable

from cagepool import _core
from cagepool.sim.names import HOSTS, action_index, host_index
from cagepool.types import Int64s

PARTS = ("user_hosts", "servers", "impact", "restores", "other")

USER_HOSTS = ("User1", "User2", "User3", "User4")
SERVERS = ("Enterprise0", "Enterprise1", "Enterprise2", "Op_Server0")
OTHERS = ("Defender", "Op_Host0", "Op_Host1", "Op_Host2")
HOST_LOSS_TENTHS = _core.host_loss_tenths()
RESTORES = [action_index(f"Restore {host}") for host in HOSTS]


def loss_parts(held: Int64s, stopped: int, uses: Int64s) -> dict[str, int]:
    """Tenths lost, by part; their sum is the loss of the games exactly.

    Args:
        held: Steps in which red was privileged on each host, (HOST_COUNT,).
        stopped: Steps in which OTService did not run.
        uses: How often each action was played, (ACTION_COUNT,).
    """
    return {
        "user_hosts": _host_loss(USER_HOSTS, held),
        "servers": _host_loss(SERVERS, held),
        "impact": _core.OUTAGE_TENTHS * stopped,
        "restores": _core.RESTORE_TENTHS * int(uses[RESTORES].sum()),
        "other": _host_loss(OTHERS, held),
    }


def _host_loss(names: Iterable[str], steps: Int64s) -> int:
    hosts = [host_index(name) for name in names]
    return sum(HOST_LOSS_TENTHS[host] * int(steps[host]) for host in hosts)

"""Reward breakdown: loss by cause (docs/rules.md, section 9), with the weights of the core."""

from collections.abc import Iterable

from cagepool import _core
from cagepool.sim.names import HOSTS, action_index, host_index
from cagepool.types import Int64s

CAUSES = ("user_hosts", "servers", "impact", "restores", "other")

USER_HOSTS = ("User1", "User2", "User3", "User4")
SERVERS = ("Enterprise0", "Enterprise1", "Enterprise2", "Op_Server0")
OTHER_HOSTS = ("Defender", "Op_Host0", "Op_Host1", "Op_Host2")
HOST_LOSS_TENTHS = _core.host_loss_tenths()
RESTORES = [action_index(f"Restore {host}") for host in HOSTS]


def loss_by_cause(
    privileged_steps: Int64s, outage_steps: int, action_uses: Int64s
) -> dict[str, int]:
    """Loss by cause, in tenths; the sum is exactly the loss of the games.

    Args:
        privileged_steps: Steps in which red was privileged on each host, (HOST_COUNT,).
        outage_steps: Steps in which OTService did not run.
        action_uses: Uses of each action, (ACTION_COUNT,).
    """
    return {
        "user_hosts": _host_loss(USER_HOSTS, privileged_steps),
        "servers": _host_loss(SERVERS, privileged_steps),
        "impact": _core.OUTAGE_TENTHS * outage_steps,
        "restores": _core.RESTORE_TENTHS * int(action_uses[RESTORES].sum()),
        "other": _host_loss(OTHER_HOSTS, privileged_steps),
    }


def _host_loss(names: Iterable[str], steps: Int64s) -> int:
    hosts = [host_index(name) for name in names]
    return sum(HOST_LOSS_TENTHS[host] * int(steps[host]) for host in hosts)

"""The 13 hosts and their names, in the order of observations and actions (docs/rules.md, 1.1)."""

from cagepool import _core

HOSTS = (
    "Defender",
    "Enterprise0",
    "Enterprise1",
    "Enterprise2",
    "Op_Host0",
    "Op_Host1",
    "Op_Host2",
    "Op_Server0",
    "User0",
    "User1",
    "User2",
    "User3",
    "User4",
)
SUBNETS = ("Enterprise", "Operational", "User")
assert len(HOSTS) == _core.HOST_COUNT
assert len(SUBNETS) == _core.SUBNET_COUNT
SUBNET_MEMBERS = {
    "Enterprise": ("Enterprise0", "Enterprise1", "Enterprise2", "Defender"),
    "Operational": ("Op_Server0", "Op_Host0", "Op_Host1", "Op_Host2"),
    "User": ("User0", "User1", "User2", "User3", "User4"),
}
SUBNET_OF = {host: subnet for subnet, members in SUBNET_MEMBERS.items() for host in members}
_INDEX = {name: index for index, name in enumerate(HOSTS)}


def index(name: str) -> int:
    """Index of a host.

    Raises:
        ValueError: no host has that name.
    """
    if name not in _INDEX:
        raise ValueError(f"a host must be one of {', '.join(HOSTS)}; got {name!r}")
    return _INDEX[name]


def name(index: int) -> str:
    """Name of a host.

    Raises:
        IndexError: there is no such host.
    """
    if not 0 <= index < len(HOSTS):
        raise IndexError(f"a host's index must be below {len(HOSTS)}, got {index}")
    return HOSTS[index]

"""Tables of Scenario2 (docs/rules.md, section 1) as constants of the JAX program."""

import numpy as np

from cagepool.jax.bits import host_table
from cagepool.sim.names import HOSTS, host_index

# Exploit ports as bits, lowest weight of the exploit first (docs/rules.md, 1.4).
SSH, RDP, SMB, HTTP, HTTPS, DATABASE, MAIL, FTP = (1 << rank for rank in range(8))
EXPLOIT_OF_RANK = (4, 1, 0, 2, 3, 5, 6, 7)
# A host's decoys are a byte: the bit of a decoy is that of the port it opens. Vsftpd, which opens
# HTTP like Apache, has the bit of the database, which no decoy opens.
DECOY_BIT = (HTTP, FTP, MAIL, SMB, SSH, RDP, HTTPS, DATABASE)
VSFTPD = 7
_WINDOWS_DECOYS = {1, 3, 5}
_LINUX_DECOYS = {2, VSFTPD}

_WEB_SERVER = SSH | RDP | SMB | HTTP | HTTPS
# Listening exploit ports; services that yield a user account; services that yield root or SYSTEM.
_SERVICES = {
    "Defender": (SSH, 0, 0),
    "Enterprise0": (SSH, SSH, 0),
    "Enterprise1": (_WEB_SERVER, HTTP | HTTPS | SSH, RDP),
    "Enterprise2": (_WEB_SERVER, HTTP | HTTPS | SSH, RDP),
    "Op_Host0": (SSH, SSH, 0),
    "Op_Host1": (SSH, SSH, 0),
    "Op_Host2": (SSH, SSH, 0),
    "Op_Server0": (SSH, SSH, 0),
    "User0": (SSH | FTP, SSH, FTP),
    "User1": (SSH | FTP, SSH, FTP),
    "User2": (SMB | RDP, RDP, SMB),
    "User3": (HTTP | RDP | HTTPS | MAIL, HTTP | HTTPS, MAIL),
    "User4": (SSH | HTTP | DATABASE | HTTPS | MAIL, SSH | HTTP | HTTPS, DATABASE | MAIL),
}
_WINDOWS = ("Enterprise1", "Enterprise2", "User0", "User1", "User2")


def mask_of(*names: str) -> np.uint32:
    """Set of hosts as bits."""
    return np.uint32(sum(1 << host_index(name) for name in names))


def _fitting_decoys(host: str) -> int:
    listening = _SERVICES[host][0]
    excluded = _LINUX_DECOYS if host in _WINDOWS else _WINDOWS_DECOYS
    fits = 0
    for decoy, bit in enumerate(DECOY_BIT):
        free_port = FTP if decoy == VSFTPD else bit
        if decoy not in excluded and not listening & free_port:
            fits |= bit
    return fits


LISTENING = host_table([_SERVICES[host][0] for host in HOSTS])
USER_LEVEL = host_table([_SERVICES[host][1] for host in HOSTS])
PRIVILEGED = host_table([_SERVICES[host][2] for host in HOSTS])
FITTING_DECOYS = host_table([_fitting_decoys(host) for host in HOSTS])
# Hosts with two more listening ports, which no exploit uses.
TWO_OTHER_PORTS = mask_of("Defender", "Enterprise1", "Enterprise2", "User2")

DEFENDER, USER0, OP_SERVER0 = map(host_index, ("Defender", "User0", "Op_Server0"))
ENTERPRISE0, ENTERPRISE1, ENTERPRISE2 = map(
    host_index, ("Enterprise0", "Enterprise1", "Enterprise2")
)
USER1, USER3 = host_index("User1"), host_index("User3")
ENTERPRISE_SERVERS = mask_of("Enterprise0", "Enterprise1", "Enterprise2")
OPERATIONAL = mask_of("Op_Host0", "Op_Host1", "Op_Host2", "Op_Server0")
USERS = mask_of("User1", "User2", "User3", "User4")
HIGH_VALUE = ENTERPRISE_SERVERS | mask_of("Op_Server0")
LOW_VALUE = mask_of(*HOSTS) & ~HIGH_VALUE & ~mask_of("User0")
ENTERPRISE_NET, OPERATIONAL_NET, USER_NET = range(3)
SUBNET_HOSTS = (
    ENTERPRISE_SERVERS | mask_of("Defender"),
    OPERATIONAL,
    USERS | mask_of("User0"),
)
GREEN_HOSTS = tuple(
    map(
        host_index,
        ("Enterprise0", "Enterprise1", "Enterprise2", "User0", "User1", "User2", "User3", "User4"),
    )
)
# Host types of workflow orders, in the order of `names.HOST_TYPES`.
TYPE_HOSTS = (
    mask_of("Defender"),
    ENTERPRISE_SERVERS,
    mask_of("Op_Server0"),
    mask_of("Op_Host0", "Op_Host1", "Op_Host2"),
    USERS,
)

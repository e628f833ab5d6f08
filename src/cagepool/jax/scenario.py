"""Tables of CAGE-2 as constants of the JAX program: those that the core plays by."""

import numpy as np

from cagepool import _core
from cagepool.jax.bits import host_table
from cagepool.scenarios import CAGE2, Layout
from cagepool.scenarios.vocabulary import DECOYS, EXPLOITS, PORT_BIT, RANKED_EXPLOITS
from cagepool.sim.masks import DECOY_PORTS
from cagepool.sim.scenario_tables import pack_scenarios

_TABLES = pack_scenarios([CAGE2], Layout.of([CAGE2]))[0]
_SERVICES = _TABLES["services"].reshape(-1, 8)[: len(CAGE2.hosts)]

# Exploit ports are bits, lowest weight of the exploit first (docs/rules.md, 1.4).
EXPLOIT_OF_RANK = tuple(map(EXPLOITS.index, RANKED_EXPLOITS))
FTP = PORT_BIT[21]
# A host's decoys are a byte: the bit of a decoy is that of the port it opens. Vsftpd, which opens
# HTTP like Apache, has the bit of the database, which no decoy opens.
VSFTPD = DECOYS.index("Vsftpd")
DECOY_BIT = tuple(PORT_BIT[3390 if name == "Vsftpd" else DECOY_PORTS[name]] for name in DECOYS)


def mask_of(*names: str) -> np.uint32:
    """Set of hosts as bits."""
    return np.uint32(sum(1 << CAGE2.host_index(name) for name in names))


def _fitting_decoys() -> list[int]:
    """Decoys that fit each host, as bits of `DECOY_BIT`."""
    fitting = [0] * len(CAGE2.hosts)
    for action in range(_core.ACTION_COUNT):
        kind, host, decoy, fits = _core.blue_action(action)
        if kind == _core.BlueKind.DECOY and fits:
            fitting[host] |= DECOY_BIT[decoy]
    return fitting


LISTENING = host_table(_SERVICES[:, 0])
USER_LEVEL = host_table(_SERVICES[:, 1])  # services that yield a user account
PRIVILEGED = host_table(_SERVICES[:, 2])  # services that yield root or SYSTEM
FITTING_DECOYS = host_table(_fitting_decoys())
# Hosts with two more listening ports, which no exploit uses.
TWO_OTHER_PORTS = mask_of(*np.array(CAGE2.hosts)[_SERVICES[:, 4] == 2])

DEFENDER, USER0, OP_SERVER0 = map(CAGE2.host_index, ("Defender", "User0", "Op_Server0"))
ENTERPRISE0, ENTERPRISE1, ENTERPRISE2 = CAGE2.gate
USER1, USER3 = CAGE2.host_index("User1"), CAGE2.host_index("User3")
SUBNET_HOSTS = tuple(map(np.uint32, _TABLES["subnet_hosts"][: len(CAGE2.subnets)]))
ENTERPRISE_NET, OPERATIONAL_NET, USER_NET = range(3)
ENTERPRISE_SERVERS = np.uint32(_TABLES["gate"])
OPERATIONAL = SUBNET_HOSTS[OPERATIONAL_NET]
USERS = SUBNET_HOSTS[USER_NET] & ~mask_of("User0")
_VALUES = np.array(CAGE2.confidentiality_tenths)
HIGH_VALUE = mask_of(*np.array(CAGE2.hosts)[_VALUES == 10])
LOW_VALUE = mask_of(*np.array(CAGE2.hosts)[_VALUES == 1])
GREEN_HOSTS = tuple(map(int, _TABLES["green_hosts"]))
# Host types of workflow orders, in the order of `names.HOST_TYPES`.
TYPE_HOSTS = tuple(map(np.uint32, _TABLES["type_hosts"]))

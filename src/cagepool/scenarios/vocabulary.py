"""Words of the rules that hold in every scenario: exploits, decoys, host types, agents."""

from collections.abc import Sequence
from difflib import get_close_matches

from cagepool import _core

DECOYS = ("Apache", "Femitter", "HarakaSMPT", "Smss", "SSHD", "Svchost", "Tomcat", "Vsftpd")
EXPLOIT_PORTS = {
    "EternalBlue": 139,
    "BlueKeep": 3389,
    "HTTPRFI": 80,
    "HTTPSRFI": 443,
    "SSHBruteForce": 22,
    "SQLInjection": 3390,
    "HarakaRCE": 25,
    "FTPDirectoryTraversal": 21,
}
EXPLOITS = tuple(EXPLOIT_PORTS)
RANKED_EXPLOITS = (
    *("SSHBruteForce", "BlueKeep", "EternalBlue", "HTTPRFI", "HTTPSRFI", "SQLInjection"),
    *("HarakaRCE", "FTPDirectoryTraversal"),
)
"""Exploits by bit of the core: in ascending order of weight (docs/rules.md, 1.4)."""
PORT_BIT = {EXPLOIT_PORTS[name]: 1 << rank for rank, name in enumerate(RANKED_EXPLOITS)}
"""Bits of the core by port."""
PRIVILEGED_ACCOUNTS = ("root", "SYSTEM")
HOST_TYPES = ("defender", "enterprise", "op_server", "op_host", "user")
assert len(HOST_TYPES) == _core.TYPE_COUNT

PLAIN_KINDS = ("Sleep", "Monitor")
"""Blue's actions without a host."""
HOST_KINDS = ("Analyse", "Remove", "Restore", "Misinform", *(f"Decoy{decoy}" for decoy in DECOYS))
"""Blue's actions on a host."""
CAGE2_KINDS = (
    *("Sleep", "Monitor", "Analyse", "Remove"),
    *(f"Decoy{decoy}" for decoy in DECOYS),
    "Restore",
)
"""Blue's actions in CAGE-2, in the order of their indices."""
CAGE1_KINDS = ("Sleep", "Monitor", "Analyse", "Remove", "Misinform", "Restore")
"""Blue's actions in CAGE-1."""
RED_KINDS = (
    "Sleep",
    "DiscoverRemoteSystems",
    "DiscoverNetworkServices",
    "ExploitRemoteService",
    "PrivilegeEscalate",
    "Impact",
)
assert len(RED_KINDS) == len(_core.RedKind)

RED_AGENTS = {
    "B_lineAgent": _core.Red.B_LINE,
    "RedMeanderAgent": _core.Red.MEANDER,
    "SleepAgent": _core.Red.SLEEP,
    "given": _core.Red.GIVEN,
}
RED_ALIASES = {"b_line": "B_lineAgent", "meander": "RedMeanderAgent", "sleep": "SleepAgent"}
MIX = "mix"
"""Red setting that draws one of the official agents per episode."""

GREEN_HOSTS = (*(f"User{i}" for i in range(5)), *(f"Enterprise{i}" for i in range(3)))
"""Names from which GreenAgent draws what it scans."""

MAX_HOSTS = 64
MAX_SUBNETS = 16


def red_class_name(red: str) -> str:
    """Class name of a red agent that is given by class name or alias."""
    name = RED_ALIASES.get(red, red)
    if name not in RED_AGENTS:
        known = ", ".join([*RED_AGENTS, *RED_ALIASES, MIX])
        raise ValueError(f"red must be one of {known}, or several joined by +; got {red!r}")
    return name


def index_of(name: str, names: Sequence[str], noun: str) -> int:
    """Index of a name, such as that of `an action`."""
    if name not in names:
        nearest = ", ".join(get_close_matches(name, names, cutoff=0))
        raise ValueError(
            f"{noun} must be one of {len(names)} names, such as {nearest}; got {name!r}"
        )
    return names.index(name)

"""Blue's 145 actions and red's 44, by name and by index (docs/rules.md, sections 2 and 5)."""

from collections.abc import Sequence
from difflib import get_close_matches

from cagepool import _core
from cagepool.sim.hosts import HOSTS, SUBNETS

DECOYS = ("Apache", "Femitter", "HarakaSMPT", "Smss", "SSHD", "Svchost", "Tomcat", "Vsftpd")
EXPLOITS = (
    "EternalBlue",
    "BlueKeep",
    "HTTPRFI",
    "HTTPSRFI",
    "SSHBruteForce",
    "SQLInjection",
    "HarakaRCE",
    "FTPDirectoryTraversal",
)
RED_KINDS = (
    "Sleep",
    "DiscoverRemoteSystems",
    "DiscoverNetworkServices",
    "ExploitRemoteService",
    "PrivilegeEscalate",
    "Impact",
)
assert len(RED_KINDS) == len(_core.RedKind)


def red_move(kind: int, target: int) -> str:
    """Name of what red did; the target of a sweep is a subnet, all others are hosts."""
    if kind == _core.RedKind.SLEEP:
        return RED_KINDS[kind]
    return f"{RED_KINDS[kind]} {(SUBNETS if kind == _core.RedKind.SWEEP else HOSTS)[target]}"


def _blue_name(index: int) -> str:
    kind, host, decoy, _ = _core.blue_action(index)
    if kind in (_core.BlueKind.SLEEP, _core.BlueKind.MONITOR):
        return kind.name.capitalize()
    verb = f"Decoy{DECOYS[decoy]}" if kind == _core.BlueKind.DECOY else kind.name.capitalize()
    return f"{verb} {HOSTS[host]}"


ACTIONS = tuple(_blue_name(index) for index in range(_core.ACTION_COUNT))
RED_ACTIONS = tuple(red_move(*_core.red_action(index)) for index in range(_core.RED_ACTION_COUNT))


def index(name: str) -> int:
    """Index of one of blue's actions, such as `Restore User4`.

    Raises:
        ValueError: blue has no such action.
    """
    return _index(name, ACTIONS, "an action")


def name(index: int) -> str:
    """Name of one of blue's actions.

    Raises:
        IndexError: there is no such action.
    """
    return _name(index, ACTIONS, "an action")


def red_index(name: str) -> int:
    """Index of one of red's actions, such as `ExploitRemoteService User1`.

    Raises:
        ValueError: red has no such action.
    """
    return _index(name, RED_ACTIONS, "a red action")


def red_name(index: int) -> str:
    """Name of one of red's actions.

    Raises:
        IndexError: there is no such action.
    """
    return _name(index, RED_ACTIONS, "a red action")


def _index(name: str, names: Sequence[str], what: str) -> int:
    if name not in names:
        nearest = ", ".join(get_close_matches(name, names, cutoff=0))
        raise ValueError(
            f"{what} must be one of {len(names)} names, such as {nearest}; got {name!r}"
        )
    return names.index(name)


def _name(index: int, names: Sequence[str], what: str) -> str:
    if not 0 <= index < len(names):
        raise IndexError(f"the index of {what} must be below {len(names)}, got {index}")
    return names[index]

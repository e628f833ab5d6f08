"""Write scenario files that CybORG reads."""

from pathlib import Path
from typing import Any

from cagepool import _optional
from cagepool.runs.file_access import create_file, replace_file
from cagepool.scenarios.file_format import ARTIFACTS, BLUE_REWARD
from cagepool.scenarios.tables import ADDRESS, ALL, TENTHS, StartingSession, Tables
from cagepool.scenarios.vocabulary import EXPLOITS, GREEN_HOSTS, RED_KINDS

Content = dict[str, Any]

_SERVER = "VeloServer"
_VALUES = {tenths: value for value, tenths in TENTHS.items()}
_KNOWN = {"Interfaces": ALL, "System info": ALL, "User info": ALL}
_LETS_IN = {"in": "all", "out": "all"}
_GATE = {"in": "None", "out": "all"}
_GREEN_ACTIONS = ("Sleep", "GreenPingSweep", "GreenPortScan", "GreenConnection")


def write_tables(tables: Tables, path: Path, *, overwrite: bool) -> None:
    """Write the scenario file of a network, atomically.

    Raises:
        ValueError: the file exists and must not be overwritten, or it cannot be written.
    """
    write = replace_file if overwrite else create_file
    try:
        write(path, to_yaml(tables))
    except FileExistsError as error:
        raise ValueError(f"a scenario must be saved to a new file, {path} exists") from error
    except OSError as error:
        reason = error.strerror or error
        raise ValueError(
            f"a scenario must be saved to a file that can be written, {path} cannot: {reason}"
        ) from error


def to_yaml(tables: Tables) -> bytes:
    """Content of the scenario file of a network."""
    with _optional.require("a scenario file", None, "yaml"):
        import yaml  # noqa: PLC0415 - only files need it

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        """Repeats equal values in place of aliases."""

        def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
            return True

    content = _Writer(tables).content()
    text: str = yaml.dump(content, Dumper=Dumper, sort_keys=False)
    return f"# sha256 of the network: {tables.hash}\n{text}".encode()


class _Writer:
    """Turns indices into names."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._hosts = tables.hosts
        self._subnets = [*tables.subnets]

    def content(self) -> Content:
        """Values of the file."""
        tables = self._tables
        agents = {"Blue": self._blue, "Red": self._red, "Green": self._green}
        return {
            "Agents": {name: agents[name]() for name in tables.order_of_play},
            "Hosts": {name: self._host(i) for i, name in enumerate(self._hosts)},
            "Subnets": {name: self._subnet(i) for i, name in enumerate(tables.subnets)},
        }

    def _host(self, index: int) -> Content:
        tables = self._tables
        host: Content = {"AWS_Info": [], "image": tables.images[index]}
        linked = sorted({*tables.reveals_ip[index], *tables.reveals_services[index]})
        if linked:
            host["info"] = {self._hosts[other]: self._link(index, other) for other in linked}
        host["ConfidentialityValue"] = _VALUES[tables.confidentiality_tenths[index]]
        host["AvailabilityValue"] = _VALUES[tables.availability_tenths[index]]
        return host

    def _link(self, index: int, other: int) -> Content:
        tables = self._tables
        link: Content = {}
        if other in tables.reveals_ip[index]:
            link["Interfaces"] = ALL if other in tables.reveals_interfaces[index] else ADDRESS
        if other in tables.reveals_services[index]:
            link["Services"] = ["OTService"]
        return link

    def _subnet(self, index: int) -> Content:
        tables = self._tables
        source = tables.subnets[tables.subnet_of[tables.entry]]
        nacls = {"open": {"all": _LETS_IN}, "gated": {source: _GATE, "all": _LETS_IN}, "closed": {}}
        members = [self._hosts[member] for member in tables.members[index]]
        return {
            "Hosts": members,
            "NACLs": nacls[tables.modes[index]],
            "Size": _size_for(len(members)),
        }

    def _blue(self) -> Content:
        return {
            "AllowedSubnets": self._subnets,
            "INT": {"Hosts": dict.fromkeys(self._hosts, _KNOWN)},
            "adversary": "Red",
            "actions": [*self._tables.action_kinds],
            "agent_type": "SleepAgent",
            "reward_calculator_type": BLUE_REWARD,
            "starting_sessions": self._sessions("Blue"),
            "wrappers": [],
        }

    def _sessions(self, agent: str) -> list[Content]:
        return [_session(one) for one in self._tables.sessions if one.agent == agent]

    def _red(self) -> Content:
        tables = self._tables
        entry = self._hosts[tables.entry]
        known: Content = {
            self._hosts[i]: {"Interfaces": ALL if i in tables.known_interfaces else ADDRESS}
            for i in tables.known_ip
        }
        known[entry]["System info"] = ALL
        return {
            "AllowedSubnets": self._subnets,
            "INT": {"Hosts": known},
            "actions": [*RED_KINDS, *EXPLOITS],
            "agent_type": "SleepAgent",
            "wrappers": [],
            "reward_calculator_type": "HybridImpactPwn",
            "starting_sessions": self._sessions("Red"),
        }

    def _green(self) -> Content:
        scanned = {self._hosts[i] for i in self._tables.green_hosts if i is not None}
        hidden = {*GREEN_HOSTS} - scanned if scanned else set()
        sessions = self._sessions("Green")
        known: Content = {name: _KNOWN for name in self._hosts if name not in hidden}
        for session in sessions[:1]:  # must be on a host that green knows
            known.setdefault(session["hostname"], {"Interfaces": ALL})
        actions = [name for name in _GREEN_ACTIONS if scanned or name != "GreenPortScan"]
        return {
            "AllowedSubnets": self._subnets,
            "INT": {"Hosts": known},
            "agent_type": "SleepAgent",
            "reward_calculator_type": "None",
            "wrappers": [],
            "actions": actions,
            "starting_sessions": sessions,
        }


def _session(session: StartingSession) -> Content:
    content: Content = {"hostname": session.host, "type": session.type, "username": session.account}
    if session.type == "VelociraptorServer":
        return content | {"name": _SERVER, "num_children_sessions": 2, "artifacts": [*ARTIFACTS]}
    if session.type == "VelociraptorClient":
        return content | {"name": f"Velo{session.host}", "parent": _SERVER}
    return content | {"name": f"{session.agent}Session"}


def _size_for(count: int) -> int:
    """Smallest `Size`, at least the number of hosts, that gives them enough addresses."""
    bits = (count + 1).bit_length()
    return max(count, 2**bits - 5 if bits > 4 else 0)

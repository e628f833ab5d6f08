"""Read and write scenario files of CybORG (docs/scenarios.md, section 0).

A file that the rules do not cover is refused with one sentence that names its field, such as
`Hosts.User1.image`.
"""

from collections import Counter
from collections.abc import Iterator
from math import floor, log2
from pathlib import Path
from typing import Any

from cagepool import _optional
from cagepool.runs.file_access import create_file, replace_file
from cagepool.scenarios.image_files import ImageLibrary
from cagepool.scenarios.tables import (
    ADDRESS,
    ALL,
    TENTHS,
    Description,
    Host,
    Link,
    StartingSession,
    Subnet,
    Tables,
)
from cagepool.scenarios.vocabulary import (
    EXPLOITS,
    GREEN_HOSTS,
    HOST_KINDS,
    MAX_HOSTS,
    MAX_SUBNETS,
    PLAIN_KINDS,
    RED_KINDS,
)
from cagepool.scenarios.yaml_reader import Field, RefusedError, read_yaml

ARTIFACTS = ("NetworkConnections", "ProcessCreation")
BLUE_REWARD = "HybridAvailabilityConfidentiality"
_RED_REWARDS = ("HybridImpactPwn", "Pwn", "Disrupt", "None")
_AGENTS = ("Blue", "Red", "Green")
_HOST_FIELDS = ("image", "info", "AWS_Info", "ConfidentialityValue", "AvailabilityValue")
_INT_FIELDS = ("Interfaces", "System info", "User info")
_INTERFACES = (ALL, ADDRESS)


def read_description(path: Path, images: Path | None = None) -> Description:
    """Description of a scenario file.

    Args:
        path: Of the file.
        images: Folder with image files of one's own; `images` beside the file by default.
    """
    content = Field(read_yaml(path))
    library = ImageLibrary(path.parent / "images" if images is None else images)
    try:
        return _ScenarioReader(content, library).description()
    except RefusedError as error:
        raise ValueError(f"{path}: {error}") from error


class _ScenarioReader:
    """Checks a file from its hosts and subnets to its agents."""

    def __init__(self, content: Field, library: ImageLibrary) -> None:
        self._agents = content.get("Agents").entries()
        self._check_agent_names(content.get("Agents"))
        self._host_fields = content.get("Hosts").entries()
        _check_number(content.get("Hosts"), 2, MAX_HOSTS, "hosts")
        self._hosts = {
            name: self._host(name, one, library) for name, one in self._host_fields.items()
        }
        subnets = content.get("Subnets").entries()
        _check_number(content.get("Subnets"), 1, MAX_SUBNETS, "subnets")
        self._subnets = {name: self._subnet(one) for name, one in subnets.items()}
        self._check_members(content.get("Subnets"))

    def description(self) -> Description:
        """The scenario of the file."""
        for agent in self._agents.values():
            self._check_agent(agent)
        blue, red = self._agents["Blue"], self._agents["Red"]
        self._check_blue(blue)
        server, clients = self._blue_sessions(blue)
        _check_actions(red.get("actions"), allowed=(*RED_KINDS, *EXPLOITS), needed=RED_KINDS)
        _check_reward(red, _RED_REWARDS)
        entry = self._entry(red.get("starting_sessions"))
        return Description(
            hosts=tuple(self._hosts.values()),
            subnets=self._subnets,
            entry=entry,
            known=self._known_to_red(red.get("INT"), entry),
            action_kinds=_check_actions(blue.get("actions"), allowed=(*PLAIN_KINDS, *HOST_KINDS)),
            agents=frozenset({server, *clients}),
            monitored=frozenset(clients),
            order_of_play=tuple(self._agents),
            scannable=self._scannable_by_green(),
            sessions=tuple(self._sessions()),
        )

    def _sessions(self) -> Iterator[StartingSession]:
        """Starting sessions in the order in which CybORG numbers those of an agent."""
        for name, agent in self._agents.items():
            field = agent.get("starting_sessions")
            sessions = [] if field.is_absent else field.items()
            for one in sorted(sessions, key=_has_no_parent, reverse=True):
                host, type_, account = (one.get(key) for key in ("hostname", "type", "username"))
                yield StartingSession(name, host.text(), type_.text(), account.text())

    def _check_agent_names(self, field: Field) -> None:
        names = self._agents.keys()
        if not names <= {*_AGENTS} or not names >= {"Blue", "Red"}:
            raise RefusedError(
                f"{field.path} must be Blue and Red, and may be Green; "
                f"got {', '.join(names) or 'none'}"
            )

    def _host(self, name: str, field: Field, library: ImageLibrary) -> Host:
        settings = field.settings(_HOST_FIELDS)
        info = field.get("info")
        links = {} if info.is_absent or info.value is None else self._hosts_in(info)
        return Host(
            name=name,
            image=library.find(field.get("image")),
            links={other: _link(link) for other, link in links.items()},
            confidentiality=_value(settings.get("ConfidentialityValue")),
            availability=_value(settings.get("AvailabilityValue")),
        )

    def _hosts_in(self, field: Field) -> dict[str, Field]:
        """Entries of a mapping by hosts."""
        entries = field.entries()
        for name in entries:
            self._check_host(Field(name, f"names in {field.path}"))
        return entries

    def _check_host(self, field: Field) -> str:
        if not isinstance(field.value, str) or field.value not in self._host_fields:
            raise field.refused("be hosts" if field.path.startswith("names") else "be a host")
        return field.value

    def _subnet(self, field: Field) -> Subnet:
        members = field.get("Hosts").items()
        names = tuple(self._check_host(member) for member in members)
        if not names:
            raise field.get("Hosts").refused("name at least one host")
        _check_size(field, len(names))
        nacls = field.get("NACLs")
        sources = {} if nacls.is_absent else nacls.entries()
        allowed = {"all": ("all",)}
        return Subnet(
            names,
            {
                source: rule.get("in").one_of(allowed.get(source, ("all", "None")))
                for source, rule in sources.items()
            },
        )

    def _check_members(self, field: Field) -> None:
        counts = Counter(name for subnet in self._subnets.values() for name in subnet.members)
        for name in self._hosts:
            if counts[name] != 1:
                found = "none" if not counts[name] else f"{counts[name]} places"
                raise RefusedError(
                    f"{field.path} must have each host in exactly one place, {name} is in {found}"
                )

    def _check_agent(self, field: Field) -> None:
        allowed = field.get("AllowedSubnets")
        names = [one.text() for one in allowed.items()]
        if {*names} != {*self._subnets}:
            raise allowed.refused(f"name all subnets ({', '.join(self._subnets)}) and no other")
        wrappers = field.get("wrappers")
        if not wrappers.is_absent and wrappers.value not in ([], None):
            raise wrappers.refused("be empty")

    def _check_blue(self, field: Field) -> None:
        field.get("adversary").one_of(("Red",))
        field.get("reward_calculator_type").one_of((BLUE_REWARD,))
        known = self._hosts_in(_int_hosts(field.get("INT")))
        for name in self._hosts:
            seen = known.get(name)
            if seen is None:
                raise RefusedError(
                    f"{field.path}.INT.Hosts must have every host with Interfaces: All and "
                    f"System info: All, {name} is missing"
                )
            seen.settings(_INT_FIELDS)
            seen.get("Interfaces").one_of((ALL,))
            seen.get("System info").one_of((ALL,))

    def _blue_sessions(self, field: Field) -> tuple[str, list[str]]:
        """Host of the VelociraptorServer, and hosts of its clients."""
        sessions = field.get("starting_sessions")
        roots = [one for one in sessions.items() if _has_no_parent(one)]
        if len(roots) != 1:
            raise RefusedError(
                f"{sessions.path} must have one session without parent, a VelociraptorServer, "
                f"it has {len(roots)}"
            )
        server = roots[0]
        server.get("type").one_of(("VelociraptorServer",))
        artifacts = server.get("artifacts")
        if {one.text() for one in artifacts.items()} != {*ARTIFACTS}:
            raise artifacts.refused(f"be {' and '.join(ARTIFACTS)}")
        clients = [
            self._client(one, server.get("name").text())
            for one in sessions.items()
            if one.path != server.path
        ]
        if len({*clients}) < len(clients):
            raise RefusedError(f"{sessions.path} must have at most one client per host")
        server.get("username").text()
        return self._check_host(server.get("hostname")), clients

    def _client(self, field: Field, server: str) -> str:
        field.get("type").one_of(("VelociraptorClient",))
        field.get("parent").one_of((server,))
        field.get("username").text()
        return self._check_host(field.get("hostname"))

    def _entry(self, field: Field) -> str:
        sessions = field.items()
        if len(sessions) != 1:
            raise RefusedError(f"{field.path} must have one session, it has {len(sessions)}")
        (session,) = sessions
        session.get("type").one_of(("RedAbstractSession",))
        name = self._check_host(session.get("hostname"))
        account = "SYSTEM" if self._hosts[name].image.windows else "root"
        if session.get("username").value != account:
            raise session.get("username").refused(
                f"be SYSTEM on Windows and root on Linux, so {account} on {name}"
            )
        return name

    def _known_to_red(self, field: Field, entry: str) -> dict[str, str]:
        """Interfaces that red knows at the start."""
        known = {}
        hosts = self._hosts_in(_int_hosts(field))
        if entry not in hosts:
            raise RefusedError(
                f"{field.path}.Hosts must have red's entry host {entry} with Interfaces: All and "
                "System info: All"
            )
        for name, host in hosts.items():
            settings = host.settings(_INT_FIELDS)
            if name == entry:
                host.get("Interfaces").one_of((ALL,))
                host.get("System info").one_of((ALL,))
            elif "System info" in settings:
                raise host.get("System info").refused(f"be absent: {entry} is the entry host")
            if "Interfaces" in settings:
                known[name] = settings["Interfaces"].one_of(_INTERFACES)
        return known

    def _scannable_by_green(self) -> frozenset[str]:
        """Hosts that green can scan: all that it knows, if its session and actions allow it."""
        if "Green" not in self._agents:
            return frozenset()
        green = self._agents["Green"]
        _check_reward(green, ("None",))
        int_, sessions, actions = (
            green.get(key) for key in ("INT", "starting_sessions", "actions")
        )
        known = {} if int_.is_absent else self._hosts_in(_int_hosts(int_))
        starts = (
            []
            if sessions.is_absent
            else [self._check_host(one.get("hostname")) for one in sessions.items()]
        )
        kinds = [] if actions.is_absent else [one.text() for one in actions.items()]
        if not starts or starts[0] not in known or "GreenPortScan" not in kinds:
            return frozenset()
        return frozenset(
            name for name, host in known.items() if host.get("System info").value == ALL
        )


def _has_no_parent(session: Field) -> bool:
    parent = session.get("parent")
    return parent.is_absent or parent.value is None


def _int_hosts(field: Field) -> Field:
    """The field `Hosts` of what an agent knows."""
    field.settings(("Hosts",))
    return field.get("Hosts")


def _check_number(field: Field, least: int, most: int, noun: str) -> None:
    if not least <= len(field.value) <= most:
        raise RefusedError(
            f"{field.path} must have {least} to {most} {noun}, it has {len(field.value)}"
        )


def _check_size(field: Field, count: int) -> None:
    size = field.get("Size")
    if type(size.value) is not int or size.value < 0:
        raise size.refused("be a whole number, at least 0")
    addresses = 2 ** max(4, floor(log2(size.value + 5))) - 2
    if count > addresses:
        raise size.refused(f"be larger: it gives {addresses} addresses for {count} hosts")


def _check_actions(
    field: Field, *, allowed: tuple[str, ...], needed: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Actions of an agent without repetitions."""
    kinds = tuple(dict.fromkeys(one.one_of(allowed) for one in field.items()))
    if not kinds:
        raise field.refused("name at least one action")
    if missing := [kind for kind in needed if kind not in kinds]:
        raise RefusedError(f"{field.path} must have {', '.join(needed)}; {missing[0]} is missing")
    return kinds


def _check_reward(field: Field, allowed: tuple[str, ...]) -> None:
    reward = field.get("reward_calculator_type")
    if not reward.is_absent and reward.value is not None:
        reward.one_of(allowed)


def _value(field: Field | None) -> str:
    return "Low" if field is None else field.one_of([*TENTHS])


def _link(field: Field) -> Link:
    settings = field.settings(("Interfaces", "Services"))
    interfaces, services = settings.get("Interfaces"), settings.get("Services")
    if services is not None:
        names = [one.one_of(("OTService",)) for one in services.items()]
    if interfaces is None and (services is None or not names):
        raise field.refused("have Interfaces or Services")
    return Link(
        interfaces=None if interfaces is None else interfaces.one_of(_INTERFACES),
        service=services is not None and bool(names),
    )


Content = dict[str, Any]

_SERVER = "VeloServer"
_VALUES = {tenths: value for value, tenths in TENTHS.items()}
_KNOWN = {"Interfaces": ALL, "System info": ALL, "User info": ALL}
_LETS_IN = {"in": "all", "out": "all"}
_GATE = {"in": "None", "out": "all"}
_GREEN_ACTIONS = ("Sleep", "GreenPingSweep", "GreenPortScan", "GreenConnection")


def write_tables(tables: Tables, path: Path, *, overwrite: bool) -> None:
    """Write the file of a scenario, atomically."""
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
    """Content of the file of a scenario."""
    with _optional.require("a scenario file", None, "yaml"):
        import yaml  # noqa: PLC0415 - only files need it

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        """Repeats equal values in place of aliases."""

        def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
            return True

    content = _Writer(tables).content()
    text: str = yaml.dump(content, Dumper=Dumper, sort_keys=False)
    return f"# sha256 of the scenario: {tables.hash}\n{text}".encode()


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

"""Tables of a scenario: all that the rules need to know of it (docs/scenarios.md, 1 to 3).

`Description` describes a scenario by names, as a scenario file does; `compile_tables` turns it into
`Tables`, in which hosts and subnets are numbers.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from cagepool.scenarios.images import Image
from cagepool.scenarios.vocabulary import GREEN_HOSTS, red_class_name

TENTHS = {"None": 0, "Low": 1, "Medium": 10, "High": 100}
"""Cost of a value of a scenario file, in tenths of a reward."""
ALL = "All"
ADDRESS = "IP Address"

Indices = tuple[int, ...]
Flags = tuple[bool, ...]


@dataclass(frozen=True)
class Link:
    """What escalating one host reveals about another one, or about itself."""

    interfaces: str | None = None  # ALL, ADDRESS, or None
    service: bool = False  # whether it names OTService


@dataclass(frozen=True)
class Host:
    """A host of a scenario."""

    name: str
    image: Image
    links: Mapping[str, Link] = field(default_factory=dict)  # by the name of the revealed host
    confidentiality: str = "Low"  # a key of TENTHS
    availability: str = "Low"


@dataclass(frozen=True)
class Subnet:
    """A subnet of a scenario: members in order, and what it lets in, by source."""

    members: tuple[str, ...]
    lets_in: Mapping[str, str] = field(default_factory=lambda: {"all": "all"})


@dataclass(frozen=True)
class StartingSession:
    """A session that an agent has from the start; it decides no game."""

    agent: str
    host: str
    type: str  # as in a scenario file, such as "VelociraptorClient"
    account: str


@dataclass(frozen=True, kw_only=True)
class Description:
    """A scenario by names."""

    hosts: tuple[Host, ...]
    subnets: Mapping[str, Subnet]
    entry: str  # host on which red starts
    known: Mapping[str, str]  # interfaces that red knows at the start: ALL or ADDRESS, by host
    action_kinds: tuple[str, ...]
    agents: frozenset[str]  # hosts with a session of blue
    monitored: frozenset[str]  # hosts with a VelociraptorClient
    order_of_play: tuple[str, ...]
    scannable: frozenset[str]  # hosts that green can scan
    sessions: tuple[StartingSession, ...] = ()  # in CybORG's order; empty: usual ones


@dataclass(frozen=True, kw_only=True, eq=False)
class Tables:
    """A scenario by indices: of a host in `hosts`, of a subnet in `subnets`."""

    hosts: tuple[str, ...]
    images: tuple[str, ...]
    windows: Flags
    ports: tuple[Indices, ...]  # listening ports, as listed
    vulnerabilities: tuple[dict[str, str | None], ...]  # account by exploit; None: resists
    mail: Flags
    ot: Flags
    confidentiality_tenths: Indices
    availability_tenths: Indices
    reveals_ip: tuple[Indices, ...]  # hosts
    reveals_interfaces: tuple[Indices, ...]  # hosts with all interfaces, hence with their subnets
    reveals_nets: tuple[Indices, ...]  # subnets
    reveals_ot: Flags
    reveals_services: tuple[Indices, ...]  # hosts whose OTService is named, whether they run it
    subnets: tuple[str, ...]  # in the order in which hosts name them
    members: tuple[Indices, ...]  # of each subnet, in the order of the file
    subnet_of: Indices
    modes: tuple[str, ...]  # of each subnet, seen from the entry host: open, gated or closed
    gate: Indices  # hosts that open gated subnets
    entry: int
    known_ip: Indices  # at the start
    known_interfaces: Indices  # of these, hosts with all interfaces
    known_nets: Indices
    action_kinds: tuple[str, ...]
    agents: Flags
    monitored: Flags
    order_of_play: tuple[str, ...]
    green_hosts: tuple[int | None, ...]  # by name in GREEN_HOSTS
    meander_op: Indices
    meander_ent: Indices
    sessions: tuple[StartingSession, ...]  # by agent, those without parent first
    own_images: Mapping[str, Mapping[str, Any]]  # content of image files of one's own, by name

    @cached_property
    def hash(self) -> str:
        """SHA-256 of all that decides the game, as hexadecimal digits.

        Images decide by the tables of their hosts, and starting sessions decide nothing.
        """
        content = {
            one.name: getattr(self, one.name)
            for one in fields(Tables)
            if one.name not in ("images", "sessions", "own_images")
        }
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def red_account(self) -> str:
        """Account of red's session on the entry host."""
        return "SYSTEM" if self.windows[self.entry] else "root"


def compile_tables(description: Description) -> Tables:
    """Tables of a scenario whose names and values are valid."""
    hosts = description.hosts
    names = tuple(host.name for host in hosts)
    index = {name: i for i, name in enumerate(names)}
    subnet_name = {
        member: name for name, subnet in description.subnets.items() for member in subnet.members
    }
    subnets = tuple(dict.fromkeys(subnet_name[name] for name in names))
    subnet_of = tuple(subnets.index(subnet_name[name]) for name in names)
    linked = [sorted((index[name], link) for name, link in host.links.items()) for host in hosts]
    complete = tuple(tuple(i for i, link in links if link.interfaces == ALL) for links in linked)
    known = tuple(sorted(index[name] for name, how in description.known.items() if how == ALL))
    source = subnet_name[description.entry]
    gate = _named(names, "Enterprise")
    tables = Tables(
        hosts=names,
        images=tuple(host.image.name for host in hosts),
        windows=tuple(host.image.windows for host in hosts),
        ports=tuple(host.image.ports for host in hosts),
        vulnerabilities=tuple(host.image.vulnerabilities for host in hosts),
        mail=tuple("HarakaRCE" in host.image.vulnerabilities for host in hosts),
        ot=tuple(host.image.ot for host in hosts),
        confidentiality_tenths=tuple(TENTHS[host.confidentiality] for host in hosts),
        availability_tenths=tuple(TENTHS[host.availability] for host in hosts),
        reveals_ip=tuple(tuple(i for i, link in links if link.interfaces) for links in linked),
        reveals_interfaces=complete,
        reveals_nets=tuple(tuple(sorted({subnet_of[i] for i in some})) for some in complete),
        reveals_ot=tuple(
            any(link.service and hosts[i].image.ot for i, link in links) for links in linked
        ),
        reveals_services=tuple(tuple(i for i, link in links if link.service) for links in linked),
        subnets=subnets,
        members=tuple(
            tuple(index[member] for member in description.subnets[name].members) for name in subnets
        ),
        subnet_of=subnet_of,
        modes=tuple(_mode(description.subnets[name].lets_in, source) for name in subnets),
        gate=gate,
        entry=index[description.entry],
        known_ip=tuple(sorted(index[name] for name in description.known)),
        known_interfaces=known,
        known_nets=tuple(sorted({subnet_of[i] for i in known})),
        action_kinds=description.action_kinds,
        agents=tuple(name in description.agents for name in names),
        monitored=tuple(name in description.monitored for name in names),
        order_of_play=description.order_of_play,
        green_hosts=tuple(
            index[name] if name in description.scannable else None for name in GREEN_HOSTS
        ),
        meander_op=_named(names, "Op"),
        meander_ent=_named(names, "Ent"),
        sessions=description.sessions,
        own_images={
            host.image.name: host.image.content for host in hosts if host.image.content is not None
        },
    )
    return tables if description.sessions else replace(tables, sessions=usual_sessions(tables))


def usual_sessions(tables: Tables) -> tuple[StartingSession, ...]:
    """Sessions of the agents of a scenario whose file does not say more than `Tables` do.

    Blue's server is on a host that is not monitored, else on Defender, else on the first host with
    an agent.
    """
    names = tables.hosts
    agents = [i for i, has_agent in enumerate(tables.agents) if has_agent]
    server = min(agents, key=lambda i: (tables.monitored[i], names[i] != "Defender"))
    scanned = [i for i in tables.green_hosts if i is not None]
    others = [i for i, name in enumerate(names) if name not in GREEN_HOSTS]
    sessions = {
        "Blue": [
            StartingSession("Blue", names[server], "VelociraptorServer", "ubuntu"),
            *(
                StartingSession("Blue", name, "VelociraptorClient", "ubuntu")
                for name, is_monitored in zip(names, tables.monitored, strict=True)
                if is_monitored
            ),
        ],
        "Green": [
            StartingSession("Green", names[i], "green_session", "GreenAgent")
            for i in (others or scanned or [0])[:1]
        ],
        "Red": [
            StartingSession("Red", names[tables.entry], "RedAbstractSession", tables.red_account)
        ],
    }
    return tuple(session for agent in tables.order_of_play for session in sessions[agent])


def _named(names: tuple[str, ...], syllable: str) -> Indices:
    return tuple(i for i, name in enumerate(names) if syllable in name)


def _mode(lets_in: Mapping[str, str], source: str) -> str:
    if source in lets_in:
        return "open" if lets_in[source] == "all" else "gated"
    return "open" if "all" in lets_in else "closed"


def red_refusal(tables: Tables, red: str) -> str | None:
    """Why a red agent cannot play a scenario, in one sentence; None if it can.

    Args:
        tables: The scenario.
        red: Class name or alias of the agent.
    """
    name = red_class_name(red)
    if name == "B_lineAgent":
        return _BLineCheck(tables).refusal()
    if name == "RedMeanderAgent":
        return _meander_refusal(tables)
    return None


def is_takeable(tables: Tables, host: int) -> bool:
    """Whether red can ever get a session on a host by an exploit."""
    accounts = tables.vulnerabilities[host].values()
    return tables.modes[tables.subnet_of[host]] != "closed" and any(
        account is not None for account in accounts
    )


class _BLineCheck:
    """Follows the targets of B_line: `user`, `ent`, `third`, Op_Server0."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def refusal(self) -> str | None:
        tables = self._tables
        if "User0" not in tables.hosts:
            return self._unknown_start()
        start = tables.hosts.index("User0")
        subnet = tables.subnet_of[start]
        if start not in tables.known_interfaces:
            return self._unknown_start()
        users = [host for host in tables.members[subnet] if host != start]
        if not users and self._is_seen(subnet):
            return "B_lineAgent needs another host in the subnet of User0"
        reasons = (self._user_refusal(user) for user in users if is_takeable(tables, user))
        return next((reason for reason in reasons if reason), None)

    def _unknown_start(self) -> str:
        return "B_lineAgent needs the host User0 in Agents.Red.INT.Hosts with Interfaces: All"

    def _is_seen(self, subnet: int) -> bool:
        mode = self._tables.modes[subnet]
        return mode == "open" or (mode == "gated" and self._tables.entry in self._tables.gate)

    def _user_refusal(self, user: int) -> str | None:
        tables = self._tables
        linked = sorted({*tables.reveals_ip[user], *tables.reveals_services[user]})
        servers = [host for host in (user, *linked) if host in tables.gate]
        name = tables.hosts[user]
        if not servers:
            return (
                f"B_lineAgent needs a host with Enterprise in its name in Hosts.{name}.info, "
                f"which escalating {name} reveals"
            )
        server = servers[0]
        if server not in tables.reveals_ip[user]:
            return (
                f"B_lineAgent needs Interfaces of {tables.hosts[server]} in Hosts.{name}.info, "
                f"its next target after {name}"
            )
        return self._server_refusal(server)

    def _server_refusal(self, server: int) -> str | None:
        tables = self._tables
        name = tables.hosts[server]
        subnet = tables.subnet_of[server]
        if not self._is_seen(subnet):
            return (
                f"B_lineAgent must be able to scan {name} from the subnet of red's entry host: "
                f"Subnets.{tables.subnets[subnet]}.NACLs do not let it in"
            )
        if not tables.ports[server]:
            return f"B_lineAgent needs an open port on {name}, whose image has none"
        if not is_takeable(tables, server):
            return None
        if server not in tables.reveals_interfaces[server]:
            return f"B_lineAgent needs {name} with Interfaces: All in Hosts.{name}.info"
        if len(tables.members[subnet]) < 3:
            return (
                f"B_lineAgent needs at least three hosts in the subnet of {name}, "
                f"Subnets.{tables.subnets[subnet]}.Hosts has {len(tables.members[subnet])}"
            )
        return self._third_refusal(tables.members[subnet][2])

    def _third_refusal(self, third: int) -> str | None:
        tables = self._tables
        name = tables.hosts[third]
        if not tables.ports[third]:
            return f"B_lineAgent needs an open port on {name}, whose image has none"
        reveals_target = any(tables.hosts[i] == "Op_Server0" for i in tables.reveals_ip[third])
        if is_takeable(tables, third) and not reveals_target:
            return f"B_lineAgent needs Op_Server0 with Interfaces in Hosts.{name}.info"
        return None


def _meander_refusal(tables: Tables) -> str | None:
    entry = tables.entry
    if entry in tables.meander_op or entry in tables.meander_ent:
        return (
            "RedMeanderAgent needs an entry host without Op or Ent in its name, "
            f"Agents.Red.starting_sessions[0].hostname is {tables.hosts[entry]}"
        )
    known = _known_for_sure(tables)
    if any(tables.hosts[host] == "Op_Server0" or not is_takeable(tables, host) for host in known):
        return None
    return (
        "RedMeanderAgent needs to learn of Op_Server0 or of a host that it can never take: "
        "here it could own every host that it knows and run out of options"
    )


def _known_for_sure(tables: Tables) -> set[int]:
    """Hosts that red learns of from its initial knowledge: open subnets, and what hosts reveal."""
    hosts: set[int] = set()
    subnets = {*tables.known_nets}
    fresh = {*tables.known_ip}
    while fresh - hosts:
        hosts |= fresh
        for host in fresh:
            subnets |= {*tables.reveals_nets[host]}
        revealed = {found for host in hosts for found in tables.reveals_ip[host]}
        swept = {
            member
            for subnet in subnets
            if tables.modes[subnet] == "open"
            for member in tables.members[subnet]
        }
        fresh = revealed | swept
    return hosts

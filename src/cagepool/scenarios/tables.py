"""Tables of a network: all that the rules need to know of a scenario (docs/scenarios.md, 1 to 3).

`Network` describes a network by names, as a scenario file does; `compile_network` turns it into
`Tables`, in which hosts and subnets are numbers.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from cagepool.scenarios.images import Image
from cagepool.scenarios.vocabulary import GREEN_HOSTS

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
    """A host of a network."""

    name: str
    image: Image
    links: Mapping[str, Link] = field(default_factory=dict)  # by the name of the revealed host
    confidentiality: str = "Low"  # a key of TENTHS
    availability: str = "Low"


@dataclass(frozen=True)
class Subnet:
    """A subnet of a network: members in order, and what it lets in, by source."""

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
class Network:
    """A network by names."""

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
    """A network by indices: of a host in `hosts`, of a subnet in `subnets`."""

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


def compile_network(network: Network) -> Tables:
    """Tables of a network whose names and values are valid."""
    hosts = network.hosts
    names = tuple(host.name for host in hosts)
    index = {name: i for i, name in enumerate(names)}
    subnet_name = {
        member: name for name, subnet in network.subnets.items() for member in subnet.members
    }
    subnets = tuple(dict.fromkeys(subnet_name[name] for name in names))
    subnet_of = tuple(subnets.index(subnet_name[name]) for name in names)
    linked = [sorted((index[name], link) for name, link in host.links.items()) for host in hosts]
    complete = tuple(tuple(i for i, link in links if link.interfaces == ALL) for links in linked)
    known = tuple(sorted(index[name] for name, how in network.known.items() if how == ALL))
    source = subnet_name[network.entry]
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
            tuple(index[member] for member in network.subnets[name].members) for name in subnets
        ),
        subnet_of=subnet_of,
        modes=tuple(_mode(network.subnets[name].lets_in, source) for name in subnets),
        gate=gate,
        entry=index[network.entry],
        known_ip=tuple(sorted(index[name] for name in network.known)),
        known_interfaces=known,
        known_nets=tuple(sorted({subnet_of[i] for i in known})),
        action_kinds=network.action_kinds,
        agents=tuple(name in network.agents for name in names),
        monitored=tuple(name in network.monitored for name in names),
        order_of_play=network.order_of_play,
        green_hosts=tuple(
            index[name] if name in network.scannable else None for name in GREEN_HOSTS
        ),
        meander_op=_named(names, "Op"),
        meander_ent=_named(names, "Ent"),
        sessions=network.sessions,
        own_images={
            host.image.name: host.image.content for host in hosts if host.image.content is not None
        },
    )
    return tables if network.sessions else replace(tables, sessions=usual_sessions(tables))


def usual_sessions(tables: Tables) -> tuple[StartingSession, ...]:
    """Sessions of the agents of a network whose file does not say more than `Tables` do.

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

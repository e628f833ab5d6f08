"""Which red agents can play a network (docs/scenarios.md, 6.4).

CybORG's agents raise when a network lacks what they expect. An agent is refused if that can happen
in some episode.
"""

from cagepool.scenarios.tables import Tables
from cagepool.scenarios.vocabulary import red_class_name


def red_refusal(tables: Tables, red: str) -> str | None:
    """Why a red agent cannot play a network, in one sentence; None if it can.

    Args:
        tables: The network.
        red: Class name or alias of the agent.

    Raises:
        ValueError: no red agent has that name.
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

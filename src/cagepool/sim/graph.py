"""Hosts and subnets of a game as arrays: what blue knows of each host, and how they are connected.

Entity networks and the observation `graph` are made of these features, and of nothing else. Blue is
told what a defender has written down of its own hosts: systems, services, values, roles, blue's
agents, access lists and links. Blue is not told on which host red starts, which agent red is, nor
anything of the true state except the decoys, which blue itself has placed.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cagepool.scenarios import Layout, Scenario
from cagepool.scenarios.vocabulary import EXPLOIT_PORTS, PRIVILEGED_ACCOUNTS
from cagepool.sim.masks import ScenarioIds, SlotTables, slot_tables
from cagepool.sim.names import DECOYS, EXPLOITS, HOST_TYPES
from cagepool.types import Arrays, Float32s, Int64s

MISINFORM_DECOYS = ("MisinformSmss", "MisinformSvchost")
OBSERVED_FEATURES = ("activity", "exploit", "compromised_low", "compromised_high")
"""Values of the observation: 1 0 scan, 1 1 exploit; 1 0 unknown, 0 1 user, 1 1 privileged."""
DECOY_FEATURES = tuple(f"decoy_{name}" for name in (*DECOYS, *MISINFORM_DECOYS))
"""Whether blue has placed such a decoy on the host."""
DYNAMIC_FEATURES = (*OBSERVED_FEATURES, *DECOY_FEATURES)
"""Features of a host that change during a game."""
_VALUES = {"Low": 1, "Medium": 10, "High": 100}  # in tenths of the reward
STATIC_FEATURES = (
    "windows",
    *(f"port_{name}" for name in EXPLOITS),  # the port of that exploit is open
    *(f"user_{name}" for name in EXPLOITS),  # that exploit yields a user account
    *(f"privileged_{name}" for name in EXPLOITS),  # that exploit yields root or SYSTEM
    "many_ports",  # at least three different ports: a scan cannot look like an exploit
    *(f"confidentiality_{name}" for name in _VALUES),  # none of them: no value
    "ot_service",
    *(f"availability_{name}" for name in _VALUES),  # of OTService; none of them: no value
    "agent",  # blue has a session: actions on the host can succeed
    "monitored",  # events on the host are reported
    *HOST_TYPES,  # the role for workflow orders; none of them: no role
    "gate_key",  # a session of red on this host opens gated subnets
    "op_server0",  # by name: the target of B_lineAgent and RedMeanderAgent
    "user0",  # by name: where B_lineAgent begins
    "gated",  # mode of the host's subnet; neither: open
    "closed",
)
"""Features of a host that its scenario decides, 0 or 1."""
HOST_FEATURES = (*DYNAMIC_FEATURES, *STATIC_FEATURES)
NODE_FEATURES = ("host", "subnet", *HOST_FEATURES)
"""Columns of `nodes` of a graph; a subnet has only `subnet`, `gated` and `closed`."""
PADDING, MEMBER, LINK = range(3)
"""Kinds of edges: unused, a host and its subnet, a host that reveals another one to red."""

_FIRST_STATIC = len(NODE_FEATURES) - len(STATIC_FEATURES)
_SUBNET_COLUMNS = [NODE_FEATURES.index(name) for name in ("subnet", "gated", "closed")]
# Bits of `true_state["decoys"]`; between them is the number of further Vsftpd.
_DECOY_BITS = np.array([*range(len(DECOYS)), 14, 15], np.uint16)


def static_features(scenario: Scenario) -> Float32s:
    """`STATIC_FEATURES` of every host, (hosts, len(STATIC_FEATURES)), in host order."""
    rows = [_static_row(scenario, host) for host in range(len(scenario.hosts))]
    return np.array(rows, np.float32)


def _static_row(scenario: Scenario, host: int) -> list[bool]:
    accounts = scenario.vulnerabilities[host]
    ports = scenario.ports[host]
    is_ot, name = scenario.ot[host], scenario.hosts[host]
    mode = scenario.modes[scenario.subnet_of[host]]
    availability = scenario.availability_tenths[host] if is_ot else 0
    return [
        scenario.windows[host],
        *(port in ports for port in EXPLOIT_PORTS.values()),
        *(accounts.get(e) not in (None, *PRIVILEGED_ACCOUNTS) for e in EXPLOITS),
        *(accounts.get(e) in PRIVILEGED_ACCOUNTS for e in EXPLOITS),
        len({*ports}) >= 3,
        *(scenario.confidentiality_tenths[host] == tenths for tenths in _VALUES.values()),
        is_ot,
        *(availability == tenths for tenths in _VALUES.values()),
        scenario.agents[host],
        scenario.monitored[host],
        *(scenario.roles[host] == role for role in HOST_TYPES),
        host in scenario.gate,
        name == "Op_Server0",
        name == "User0",
        mode == "gated",
        mode == "closed",
    ]


def links(scenario: Scenario) -> list[tuple[int, int]]:
    """Pairs of hosts: a privileged session on the first reveals the address of the second."""
    return [
        (host, other)
        for host, revealed in enumerate(scenario.reveals_ip)
        for other in revealed
        if other != host
    ]


def edges(scenario: Scenario, layout: Layout) -> list[tuple[int, int, int]]:
    """Edges as source node, target node and kind; node `len(layout.slots) + i` is subnet i."""
    slots = scenario.slots(layout).tolist()
    first_subnet = len(layout.slots)
    members = [
        (slots[host], first_subnet + subnet, MEMBER)
        for host, subnet in enumerate(scenario.subnet_of)
    ]
    return members + [(slots[host], slots[other], LINK) for host, other in links(scenario)]


class GraphSize(NamedTuple):
    """Sizes of the arrays of a graph: those of the largest scenario."""

    hosts: int  # slots of the layout
    subnets: int
    edges: int

    @property
    def nodes(self) -> int:
        """Slots and subnets."""
        return self.hosts + self.subnets


def graph_size(scenarios: Sequence[Scenario], layout: Layout) -> GraphSize:
    """Sizes of graphs that all of these scenarios fit."""
    return GraphSize(
        hosts=len(layout.slots),
        subnets=max(len(scenario.subnets) for scenario in scenarios),
        edges=max(len(scenario.hosts) + len(links(scenario)) for scenario in scenarios),
    )


class HostTables:
    """Hosts of several scenarios by slot of one layout; `scenario_ids` says which game has which.

    Rows of slots that a scenario does not have are 0; `subnet_of` is -1 there.
    """

    size: GraphSize
    static: Float32s  # (scenarios, slots, len(STATIC_FEATURES))
    slots: SlotTables
    subnet_of: Int64s  # (scenarios, slots), subnet of the slot's host

    def __init__(
        self, scenarios: Sequence[Scenario], layout: Layout, size: GraphSize | None = None
    ) -> None:
        """Compute the tables; `host_tables` caches them."""
        shape = len(scenarios), len(layout.slots)
        self.slots = slot_tables(tuple(scenarios), layout)
        self.size = size or graph_size(scenarios, layout)
        self.static = np.zeros((*shape, len(STATIC_FEATURES)), np.float32)
        self.subnet_of = np.full(shape, -1, np.int64)
        for index, scenario in enumerate(scenarios):
            slots = scenario.slots(layout)
            self.static[index, slots] = static_features(scenario)
            self.subnet_of[index, slots] = scenario.subnet_of
        # Without Misinform the bits of its decoys belong to the number of Vsftpd.
        self._decoy_flags = np.ones(len(DECOY_FEATURES), np.uint16)
        self._decoy_flags[len(DECOYS) :] = "Misinform" in layout.kinds
        self._scenarios, self._layout = tuple(scenarios), layout

    def write_dynamic(
        self,
        features: Float32s,
        observations: NDArray[np.generic],
        decoys: NDArray[np.uint16],
        scenario_ids: ScenarioIds,
    ) -> None:
        """Write `DYNAMIC_FEATURES` into an array, (games, slots, len(DYNAMIC_FEATURES)).

        Args:
            features: The array.
            observations: Of blue, (games, 4 * slots).
            decoys: `true_state["decoys"]`, (games, hosts).
            scenario_ids: Scenario of each game, (games,).
        """
        observed = len(OBSERVED_FEATURES)
        features[..., :observed] = observations.reshape(len(observations), -1, observed)
        placed = self.slots.by_slot(decoys, scenario_ids)[..., None]
        features[..., observed:] = (placed >> _DECOY_BITS) & self._decoy_flags

    def host_features(
        self,
        observations: NDArray[np.generic],
        decoys: NDArray[np.uint16],
        scenario_ids: ScenarioIds,
    ) -> Float32s:
        """`HOST_FEATURES` by slot, (games, slots, len(HOST_FEATURES)); see `write_dynamic`."""
        shape = len(observations), self.size.hosts, len(HOST_FEATURES)
        features = np.empty(shape, np.float32)
        features[..., len(DYNAMIC_FEATURES) :] = self.static[scenario_ids]
        dynamic = features[..., : len(DYNAMIC_FEATURES)]
        self.write_dynamic(dynamic, observations, decoys, scenario_ids)
        return features

    @cached_property
    def graphs(self) -> Arrays:
        """Static arrays of each scenario's graph: `nodes`, `node_mask`, `edges`, `edge_kinds`.

        Nodes are the slots of the layout, then the subnets; their dynamic features are 0.
        """
        scenarios, size = len(self._scenarios), self.size
        nodes = np.zeros((scenarios, size.nodes, len(NODE_FEATURES)), np.float32)
        pairs = np.zeros((scenarios, size.edges, 2), np.int64)
        kinds = np.zeros((scenarios, size.edges), np.int8)
        nodes[:, : size.hosts, 0] = self.slots.mask
        nodes[:, : size.hosts, _FIRST_STATIC:] = self.static
        for index, scenario in enumerate(self._scenarios):
            for subnet, mode in enumerate(scenario.modes):
                values = (1, mode == "gated", mode == "closed")
                nodes[index, size.hosts + subnet, _SUBNET_COLUMNS] = values
            rows = np.array(edges(scenario, self._layout))
            pairs[index, : len(rows)], kinds[index, : len(rows)] = rows[:, :2], rows[:, 2]
        node_mask = (nodes[..., 0] + nodes[..., 1]).astype(np.int8)
        return {"nodes": nodes, "node_mask": node_mask, "edges": pairs, "edge_kinds": kinds}


@lru_cache(maxsize=16)
def host_tables(
    scenarios: tuple[Scenario, ...], layout: Layout, size: GraphSize | None = None
) -> HostTables:
    """The tables of these scenarios in this layout, which must not be written.

    Args:
        scenarios: The scenarios.
        layout: The layout.
        size: Sizes of the graphs; None: those of the largest scenario.
    """
    return HostTables(scenarios, layout, size)

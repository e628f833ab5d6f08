"""Features of hosts and subnets: what blue is told, by slot of a layout."""

from dataclasses import replace

import numpy as np
import pytest

from cagepool.scenarios import CAGE2, Layout, Scenario
from cagepool.sim.graph import (
    DYNAMIC_FEATURES,
    HOST_FEATURES,
    LINK,
    MEMBER,
    NODE_FEATURES,
    STATIC_FEATURES,
    edges,
    host_tables,
    static_features,
)
from tests.scenarios.files import SAMPLES, sample


def features_of(scenario: Scenario, host: str) -> set[str]:
    row = static_features(scenario)[scenario.host_index(host)]
    return {name for name, value in zip(STATIC_FEATURES, row, strict=True) if value}


def test_features_of_a_host_are_those_of_the_rules() -> None:
    assert features_of(CAGE2, "Op_Server0") == {
        *("port_SSHBruteForce", "user_SSHBruteForce", "confidentiality_Medium", "ot_service"),
        *("availability_High", "agent", "monitored", "op_server", "op_server0", "gated"),
    }
    assert features_of(CAGE2, "User2") == {
        *("windows", "port_EternalBlue", "port_BlueKeep", "privileged_EternalBlue"),
        *("user_BlueKeep", "many_ports", "confidentiality_Low", "agent", "monitored", "user"),
    }
    hidden = features_of(sample("blind_spots"), "User2")
    assert not hidden & {"agent", "monitored"}


def test_blue_is_not_told_where_red_starts() -> None:
    moved = replace(CAGE2, entry=CAGE2.host_index("User3"))
    np.testing.assert_array_equal(static_features(CAGE2), static_features(moved))


@pytest.mark.parametrize("name", SAMPLES)
def test_edges_join_hosts_with_subnets_and_with_what_they_reveal(name: str) -> None:
    scenario = sample(name)
    layout = Layout.of([scenario])
    found = edges(scenario, layout)
    hosts = len(scenario.hosts)
    members = [(start, end - hosts) for start, end, kind in found if kind == MEMBER]
    assert members == list(enumerate(scenario.subnet_of))
    for start, end, kind in found:
        if kind == LINK:
            assert end in scenario.reveals_ip[start]
            assert end != start


def test_rows_are_by_slot_and_zero_where_there_is_no_host() -> None:
    scenarios = (sample("tiny"), sample("linear4"))
    layout = Layout.of(scenarios)
    tables = host_tables(scenarios, layout)
    observations = np.zeros((3, 4 * len(layout.slots)), np.float32)
    observations[0, 4 * layout.slots.index("User1")] = 1
    decoys = np.zeros((3, 15), np.uint16)
    decoys[1, scenarios[1].host_index("Plant2")] = 1 << 6
    rows = tables.host_features(observations, decoys, np.array([0, 1, 0]))
    assert rows.shape == (3, len(layout.slots), len(HOST_FEATURES))
    changed = np.argwhere(rows[..., : len(DYNAMIC_FEATURES)])
    assert [
        (game, layout.slots[slot], HOST_FEATURES[column]) for game, slot, column in changed
    ] == [
        (0, "User1", "activity"),
        (1, "Plant2", "decoy_Tomcat"),
    ]
    absent = [slot for slot, name in enumerate(layout.slots) if name not in scenarios[0].hosts]
    assert not rows[2, absent].any()
    assert rows[1, absent].any()


def test_misinform_has_decoys_of_its_own() -> None:
    with_misinform, without = sample("cage1_misinform"), CAGE2
    decoys = np.full((1, 13), 1 << 14, np.uint16)
    columns = [HOST_FEATURES.index(f"decoy_Misinform{name}") for name in ("Smss", "Svchost")]
    for scenario, expected in ((with_misinform, [1.0, 0.0]), (without, [0.0, 0.0])):
        tables = host_tables((scenario,), Layout.of([scenario]))
        rows = tables.host_features(np.zeros((1, 52)), decoys, np.zeros(1, np.int64))
        assert rows[0, 0, columns].tolist() == expected


def test_graphs_have_a_node_per_slot_and_subnet() -> None:
    scenarios = (sample("tiny"), sample("flat"))
    tables = host_tables(scenarios, Layout.of(scenarios))
    nodes = tables.graphs["nodes"]
    assert nodes.shape == (2, tables.size.nodes, len(NODE_FEATURES))
    assert nodes[..., NODE_FEATURES.index("host")].sum(axis=1).tolist() == [6, 12]
    assert nodes[..., NODE_FEATURES.index("subnet")].sum(axis=1).tolist() == [3, 1]
    assert (tables.graphs["node_mask"].sum(axis=1) == [9, 13]).all()

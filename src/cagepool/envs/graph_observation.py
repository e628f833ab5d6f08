"""Observations as graphs: `observation="graph"` of the environments (docs/environments.md)."""

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, MultiBinary
from numpy.typing import NDArray

from cagepool.scenarios import Layout
from cagepool.sim.batch import Batch
from cagepool.sim.graph import (
    DYNAMIC_FEATURES,
    LINK,
    NODE_FEATURES,
    GraphSize,
    HostTables,
    host_tables,
)
from cagepool.sim.masks import ScenarioIds, action_table, mask_tables
from cagepool.types import Arrays, Records

_FIRST_DYNAMIC = NODE_FEATURES.index(DYNAMIC_FEATURES[0])
_DYNAMIC = slice(_FIRST_DYNAMIC, _FIRST_DYNAMIC + len(DYNAMIC_FEATURES))


def graph_space(size: GraphSize, layout: Layout) -> Dict:
    """Space of the graph of one game."""
    return Dict(
        {
            "nodes": Box(0, 1, (size.nodes, len(NODE_FEATURES)), np.float32),
            "node_mask": MultiBinary(size.nodes),
            "edges": Box(0, size.nodes - 1, (size.edges, 2), np.int64),
            "edge_kinds": Box(0, LINK, (size.edges,), np.int8),
            "action_mask": MultiBinary(len(action_table(layout))),
        }
    )


class GraphObserver:
    """Graphs of the games of a batch, in arrays that every call overwrites."""

    def __init__(self, batch: Batch, size: GraphSize | None = None) -> None:
        """Allocate the arrays.

        Args:
            batch: The games.
            size: Sizes of the arrays; None: those of the largest scenario of the batch.
        """
        self._tables: HostTables = host_tables(batch.scenarios, batch.layout, size)
        self._masks = mask_tables(batch.scenarios, batch.layout)
        self._ids = np.full(batch.games, -1, np.int32)  # scenarios whose graphs are in the arrays
        graphs = self._tables.graphs
        self._arrays: Arrays = {
            name: np.zeros((batch.games, *table.shape[1:]), table.dtype)
            for name, table in graphs.items()
        }
        actions = len(action_table(batch.layout))
        self._arrays["action_mask"] = np.zeros((batch.games, actions), np.int8)
        self.space = graph_space(self._tables.size, batch.layout)

    def observe(self, batch: Batch) -> Arrays:
        """The graphs of all games; the next call overwrites them."""
        ids = batch.scenario_ids
        changed = np.flatnonzero(ids != self._ids)
        if len(changed):
            self._ids[changed] = ids[changed]
            for name, table in self._tables.graphs.items():
                self._arrays[name][changed] = table[ids[changed]]
        self._write(self._arrays, batch.observations, batch.true_state, ids)
        return self._arrays

    def final_graphs(self, batch: Batch, games: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Graphs at the end of the episodes of these games; autoreset same_step only."""
        states = batch.final_true_state[games]
        ids = states["scenario"]
        arrays = {name: table[ids] for name, table in self._tables.graphs.items()}
        arrays["action_mask"] = np.zeros((len(games), len(self._masks.table)), np.int8)
        self._write(arrays, batch.final_observations[games], states, ids)
        return [{name: array[row] for name, array in arrays.items()} for row in range(len(games))]

    def _write(
        self, arrays: Arrays, observations: NDArray[Any], states: Records, ids: ScenarioIds
    ) -> None:
        decoys = states["decoys"]
        hosts = arrays["nodes"][:, : self._tables.size.hosts, _DYNAMIC]
        self._tables.write_dynamic(hosts, observations, decoys, ids)
        arrays["action_mask"][:] = self._masks.masks(decoys, ids)

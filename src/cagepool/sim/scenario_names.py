"""Names of hosts, actions and targets in the games of a batch, each by the game's own scenario."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cagepool import _core
from cagepool.scenarios import CAGE2, Layout, Scenario
from cagepool.sim.names import RED_KINDS
from cagepool.sim.slots import Scalar, ScenarioIds, action_table, slot_tables
from cagepool.types import Int64s

Names = NDArray[np.object_]  # strings, and None where there is nothing to name


class ScenarioNames:
    """Name tables of several scenarios in one layout; index -1 stands for None."""

    def __init__(self, scenarios: Sequence[Scenario], layout: Layout) -> None:
        """Make the tables; `scenario_names` caches them."""
        table = action_table(layout)
        hosts = slot_tables(tuple(scenarios), layout).host_of_slot
        # One more column, for slot -1 of actions without a host.
        self._host_of_slot = np.pad(hosts, ((0, 0), (0, 1)), constant_values=-1)
        self._slot_names = layout.slots
        self._slots = table.slots
        self._kinds: Names = np.array(layout.kinds, object)[table.kinds]
        self._hosts = _name_rows(scenario.hosts for scenario in scenarios)
        self._subnets = _name_rows(scenario.subnets for scenario in scenarios)
        targets = max(self._hosts.shape[1], self._subnets.shape[1])
        self._red_targets = np.full((len(scenarios), len(RED_KINDS), targets), None, object)
        self._red_targets[:, :, : self._hosts.shape[1] - 1] = self._hosts[:, None, :-1]
        self._red_targets[:, _core.RedKind.SWEEP] = None
        subnets = self._subnets[:, :-1]
        self._red_targets[:, _core.RedKind.SWEEP, : subnets.shape[1]] = subnets
        self._red_targets[:, _core.RedKind.SLEEP] = None

    def blue_kinds(self, actions: NDArray[np.integer]) -> Names:
        """Kinds of blue's actions, such as `Restore` or `DecoyTomcat`."""
        return self._kinds.take(actions)

    def blue_host_indices(self, scenario_ids: ScenarioIds, actions: NDArray[np.integer]) -> Int64s:
        """Hosts that blue's actions are played on; -1: none, or none of the game's network."""
        return _pick(self._host_of_slot, scenario_ids, self._slots.take(actions))

    def hosts(self, scenario_ids: ScenarioIds, indices: NDArray[np.integer]) -> Names:
        """Names of hosts."""
        return _pick(self._hosts, scenario_ids, indices)

    def red_targets(
        self,
        scenario_ids: ScenarioIds,
        kinds: NDArray[np.integer],
        targets: NDArray[np.integer],
    ) -> Names:
        """Targets of red's actions: a subnet for a sweep, else a host."""
        names: Names = self._red_targets[scenario_ids, kinds, targets]
        return names

    def blue_host(self, scenario: int, action: int) -> str | None:
        """Host that an action of blue is played on, in one game."""
        host = self._host_of_slot[scenario, self._slots[action]]
        return self.host(scenario, host)

    def host(self, scenario: int, index: int) -> str | None:
        """Name of a host in one game."""
        name: str | None = self._hosts[scenario, index]
        return name

    def blue_move(self, scenario: int, action: int) -> str:
        """Name of an action of blue in one game, such as `Restore User4`."""
        kind, slot = self._kinds[action], self._slots[action]
        # A slot that the game's network lacks has only its own name.
        place = "" if slot < 0 else self.blue_host(scenario, action) or self._slot_names[slot]
        return f"{kind} {place}".rstrip()

    def red_move(self, scenario: int, kind: int, target: int) -> str:
        """Name of an action of red in one game, such as `Impact Op_Server0`."""
        place = self._red_targets[scenario, kind, target]
        return RED_KINDS[kind] if place is None else f"{RED_KINDS[kind]} {place}"


def _name_rows(rows: Iterable[Sequence[str]]) -> Names:
    """Names by row and index, padded with None; the last column is None."""
    names = [tuple(row) for row in rows]
    table = np.full((len(names), max(map(len, names)) + 1), None, object)
    for row, values in zip(table, names, strict=True):
        row[: len(values)] = values
    return table


def _pick(
    table: NDArray[Scalar], rows: ScenarioIds, columns: NDArray[np.integer]
) -> NDArray[Scalar]:
    """`table[rows, columns]`, faster where there is only one row."""
    if len(table) == 1:
        row: NDArray[Scalar] = table[0]
        return row.take(columns)
    picked: NDArray[Scalar] = table[rows, columns]
    return picked


@lru_cache(maxsize=16)
def scenario_names(scenarios: tuple[Scenario, ...], layout: Layout) -> ScenarioNames:
    """The names of these scenarios in this layout."""
    return ScenarioNames(scenarios, layout)


@lru_cache(maxsize=1)
def cage2_names() -> ScenarioNames:
    """The names of the built-in network."""
    return ScenarioNames((CAGE2,), Layout.of((CAGE2,)))

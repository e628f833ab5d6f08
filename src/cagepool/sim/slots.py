"""Hosts and actions of several scenarios by slot of one layout.

Observations, action indices and masks are by slot; the true state and moves are by host of the
game's own scenario.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cagepool.scenarios import Layout, Scenario
from cagepool.scenarios.vocabulary import PLAIN_KINDS
from cagepool.types import Bools, Int64s

Scalar = TypeVar("Scalar", bound=np.generic)
ScenarioIds = NDArray[np.integer]  # (games,), index of each game's scenario


class ActionTable:
    """Kind and slot of every action of a layout (docs/rules.md, section 2)."""

    kind_names: tuple[str, ...]
    kinds: Int64s  # (actions,), index into `kind_names`
    slots: Int64s  # (actions,), -1: the action has no host
    first: dict[str, int]  # index of the first action of each kind

    def __init__(self, layout: Layout) -> None:
        """Number the actions; `action_table` caches them."""
        sizes = [1 if kind in PLAIN_KINDS else len(layout.slots) for kind in layout.kinds]
        self.kind_names = layout.kinds
        self.kinds = np.repeat(np.arange(len(sizes)), sizes)
        slots = [[-1] if kind in PLAIN_KINDS else range(len(layout.slots)) for kind in layout.kinds]
        self.slots = np.concatenate([np.array(of_kind, np.int64) for of_kind in slots])
        starts = np.cumsum([0, *sizes[:-1]]).tolist()
        self.first = dict(zip(layout.kinds, starts, strict=True))

    def __len__(self) -> int:
        """Number of actions."""
        return len(self.kinds)


class SlotTables:
    """Which host of each scenario is in which slot of a layout."""

    host_of_slot: Int64s  # (scenarios, slots), -1: the scenario has no such host
    mask: Bools  # (scenarios, slots), slots that have a host

    def __init__(self, scenarios: Sequence[Scenario], layout: Layout) -> None:
        """Compute the tables; `slot_tables` caches them."""
        self.host_of_slot = np.full((len(scenarios), len(layout.slots)), -1, np.int64)
        for index, scenario in enumerate(scenarios):
            slots = scenario.slots(layout)
            self.host_of_slot[index, slots] = np.arange(len(slots))
        self.mask = self.host_of_slot >= 0
        # Hosts that are in the order of their slots need not be moved.
        self._is_aligned = bool(np.all(self.host_of_slot == np.arange(len(layout.slots))))

    def by_slot(self, values: NDArray[Scalar], scenario_ids: ScenarioIds) -> NDArray[Scalar]:
        """Values of hosts, (games, hosts), by slot, (games, slots); 0 where there is no host."""
        if self._is_aligned:
            return values
        hosts = self.host_of_slot[scenario_ids]
        moved = np.take_along_axis(values, np.maximum(hosts, 0), 1)
        moved[hosts < 0] = 0
        return moved


@lru_cache(maxsize=64)
def action_table(layout: Layout) -> ActionTable:
    """The actions of a layout; the arrays must not be written."""
    return ActionTable(layout)


@lru_cache(maxsize=16)
def slot_tables(scenarios: tuple[Scenario, ...], layout: Layout) -> SlotTables:
    """The slots of these scenarios; the arrays must not be written."""
    return SlotTables(scenarios, layout)

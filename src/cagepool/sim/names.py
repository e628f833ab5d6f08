"""Names of hosts, actions, red agents and editions (docs/rules.md, 1, 2 and 5).

The indices are those of the core: of host arrays, of actions, and of its enums.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from cagepool import _core
from cagepool.scenarios import CAGE2, Layout, Scenario, vocabulary
from cagepool.sim.masks import Scalar, ScenarioIds, action_table, slot_tables
from cagepool.types import Int64s

DECOYS = vocabulary.DECOYS
EXPLOITS = vocabulary.EXPLOITS
HOST_TYPES = vocabulary.HOST_TYPES
MIX = vocabulary.MIX
RED_AGENTS = vocabulary.RED_AGENTS
RED_ALIASES = vocabulary.RED_ALIASES
RED_KINDS = vocabulary.RED_KINDS
red_class_name = vocabulary.red_class_name

HOSTS = CAGE2.hosts
SUBNETS = CAGE2.subnets

EDITIONS = {"2.1": _core.Edition.V21, "leaderboard": _core.Edition.LEADERBOARD}

OFFICIAL_REDS = ("B_lineAgent", "RedMeanderAgent", "SleepAgent")
"""Red agents of the official score table, in its order."""
TRAINABLE_REDS = tuple(name for name in RED_AGENTS if name != "given")
"""Red agents that choose their own actions; `given` needs a second player."""
TRACE_REDS = ("B_lineAgent", "RedMeanderAgent", "SleepAgent")
"""Red agents by their number in the `ep_red` of traces that we write."""


def host_index(name: str) -> int:
    """Index of a host."""
    if name not in HOSTS:
        raise ValueError(f"a host must be one of {', '.join(HOSTS)}; got {name!r}")
    return HOSTS.index(name)


ACTIONS = CAGE2.actions
RED_ACTIONS = CAGE2.red_actions


def action_index(name: str) -> int:
    """Index of a blue action, such as `Restore User4`."""
    return vocabulary.index_of(name, ACTIONS, "an action")


def action_name(index: int) -> str:
    """Name of a blue action."""
    return _name_at(index, ACTIONS, "an action")


def red_action_index(name: str) -> int:
    """Index of a red action, such as `ExploitRemoteService User1`."""
    return vocabulary.index_of(name, RED_ACTIONS, "a red action")


def red_action_name(index: int) -> str:
    """Name of a red action."""
    return _name_at(index, RED_ACTIONS, "a red action")


def red_class_names(red: str) -> tuple[str, ...]:
    """Class names of the agents from which a red setting draws: one agent, `a+b` or `mix`."""
    if red == MIX:
        return OFFICIAL_REDS
    return tuple(red_class_name(part.partition(":")[0]) for part in red.split("+"))


def has_red_weights(red: str) -> bool:
    """Whether a red setting gives weights, as in `b_line:0.48+meander:0.52`."""
    return ":" in red


def red_weights(red: str) -> dict[str, float]:
    """Probability of each agent of a red setting, by class name; equal without weights."""
    names = red_class_names(red)
    if not has_red_weights(red):
        agents = dict.fromkeys(names)
        return dict.fromkeys(agents, 1 / len(agents))
    weights = [_red_weight(red, part) for part in red.split("+")]
    if len({*names}) != len(names):
        raise ValueError(f"red must name an agent once if it has weights, got {red!r}")
    return {name: weight / sum(weights) for name, weight in zip(names, weights, strict=True)}


def red_shares(red: str) -> tuple[int, ...]:
    """Weights of a red setting as `GameConfig.red_shares` of the core; zeros: equal shares."""
    agents = list(RED_AGENTS)[:-1]  # the last one has the rest
    if not has_red_weights(red):
        return (0,) * len(agents)
    weights = red_weights(red)
    if min(weights.values()) < 2**-16:
        raise ValueError(f"a weight of red must be at least 1/65536 of their sum, got {red!r}")
    sums = accumulate(weights.get(name, 0.0) for name in agents)
    return tuple(min(round(2**16 * cumulative), 2**16 - 1) for cumulative in sums)


def _red_weight(red: str, part: str) -> float:
    name, _, weight = part.partition(":")
    try:
        value = float(weight)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ValueError(
            f"a weight of red must be a number above 0, such as {name}:0.5, got {part!r} in {red!r}"
        )
    return value


def red_bitmask(red: str) -> int:
    """Set of agents from which a red setting draws, as bits of `_core.Red`."""
    return sum({1 << int(RED_AGENTS[name]) for name in red_class_names(red)})


def edition_code(name: str) -> _core.Edition:
    """Edition in the core."""
    if name not in EDITIONS:
        raise ValueError(f"edition must be one of {', '.join(EDITIONS)}; got {name!r}")
    return EDITIONS[name]


def _name_at(index: int, names: Sequence[str], noun: str) -> str:
    if not 0 <= index < len(names):
        raise IndexError(f"the index of {noun} must be below {len(names)}, got {index}")
    return names[index]


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
        """Hosts that blue's actions are played on; -1: none, or none of the game's scenario."""
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
        # A slot that the game's scenario lacks has only its own name.
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
def scenario_names(
    scenarios: tuple[Scenario, ...] = (CAGE2,), layout: Layout | None = None
) -> ScenarioNames:
    """The names of these scenarios in this layout; by default in their own."""
    return ScenarioNames(scenarios, layout or Layout.of(scenarios))

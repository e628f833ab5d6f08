"""Blue's actions by slot of a layout, the actions that can succeed, and subsets of the actions.

Observations, action indices and masks are by slot; the true state and moves are by host of the
game's own scenario. Masks follow from facts that blue knows.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Literal, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from cagepool import _core
from cagepool.scenarios import CAGE2, Layout, Scenario
from cagepool.scenarios.vocabulary import DECOYS, PLAIN_KINDS, PORT_BIT
from cagepool.types import Bools, Bytes, Int64s

_PORT_OF = {bit: port for port, bit in PORT_BIT.items()}
_OPENED, _FREE = zip(*_core.ports_of_decoys(), strict=True)
DECOY_PORTS: Final = {name: _PORT_OF[bit] for name, bit in zip(DECOYS, _OPENED, strict=True)}
"""Ports that decoys open (docs/rules.md, 1.5)."""
FREE_PORTS: Final = {name: _PORT_OF[bit] for name, bit in zip(DECOYS, _FREE, strict=True)}
"""Ports that must be free before (Q1)."""
_WINDOWS_DECOYS = ("Femitter", "Smss", "Svchost")
_LINUX_DECOYS = ("HarakaSMPT", "Vsftpd")
# Ports by bit of the true state's decoys; bits 14 and 15 are placed by Misinform (Q28).
_PORT_OF_BIT: Final = {
    **{bit: DECOY_PORTS[name] for bit, name in enumerate(DECOYS)},
    14: DECOY_PORTS["Smss"],
    15: DECOY_PORTS["Svchost"],
}
MISINFORM_PORTS = (22, 80, 139, 443, 3389)
_MISINFORM = "Misinform"

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


def _bits_that_open(port: int) -> int:
    """Decoys, as bits, that open a port."""
    return sum(1 << bit for bit, opened in _PORT_OF_BIT.items() if opened == port)


class MaskTables:
    """Actions that can succeed in several scenarios, by action of one layout."""

    def __init__(self, scenarios: Sequence[Scenario], layout: Layout) -> None:
        """Compute the tables; `mask_tables` caches them."""
        self.table = action_table(layout)
        self.slots = slot_tables(tuple(scenarios), layout)
        self._scenarios, self._layout = tuple(scenarios), layout
        kinds = self.table.kinds
        decoys = [kind.removeprefix("Decoy") for kind in layout.kinds]
        bits = [1 << DECOYS.index(name) if name in DECOYS else 0 for name in decoys]
        self.decoy_bits = np.array(bits, np.uint16)[kinds]  # (actions,), that an action places
        self._blockers = [  # actions of each decoy, and the decoys, as bits, that block them
            (self._actions_of(f"Decoy{name}"), np.uint16(_bits_that_open(FREE_PORTS[name])))
            for name in decoys
            if name in DECOYS
        ]
        self.possible: Bools = np.stack(
            [self._possible_actions(scenario) for scenario in scenarios]
        )
        lasts = self.decoy_bits == 0
        if _MISINFORM in layout.kinds:
            lasts[self._actions_of(_MISINFORM)] = False
            self._open_ports = np.stack([self._open_misinform_ports(s) for s in scenarios])
        # Where blue has nothing but decoys, there may be nothing left to place.
        self._can_run_out = not (self.possible & lasts).any(axis=1).all()

    def masks(
        self,
        decoys: NDArray[np.uint16],
        scenario_ids: ScenarioIds,
        *,
        monitor: bool = True,
        defender: bool = True,
        user0: bool = True,
    ) -> Bools:
        """Masks, (games, actions), by the decoys, (games, hosts): see `action_masks`."""
        placed = np.ascontiguousarray(self.slots.by_slot(decoys, scenario_ids))
        masks: Bools = self.possible.take(scenario_ids, 0)
        for actions, blockers in self._blockers:
            masks[:, actions] &= (placed & blockers) == 0
        if _MISINFORM in self._layout.kinds:
            opened = _MISINFORM_PORTS_OF_DECOYS[placed] | self._open_ports[scenario_ids]
            masks[:, self._actions_of(_MISINFORM)] &= opened != _ALL_MISINFORM_PORTS
        if self._can_run_out:
            stuck = ~masks.any(axis=1)
            masks[stuck] = self.possible[scenario_ids[stuck]]
        if not monitor:
            masks &= ~self.is_of_kind("Monitor")
        for host, is_allowed in (("Defender", defender), ("User0", user0)):
            if not is_allowed:
                masks &= ~self._is_on_host(host)[scenario_ids]
        return masks

    def _actions_of(self, kind: str) -> slice:
        """Actions of a kind that has hosts, by slot."""
        first = self.table.first[kind]
        return slice(first, first + len(self._layout.slots))

    def _possible_actions(self, scenario: Scenario) -> Bools:
        """Actions that can succeed at some time, (actions,)."""
        possible = np.zeros(len(self.table), np.bool_)
        slots = scenario.slots(self._layout)
        for kind in scenario.action_kinds:
            first = self.table.first[kind]
            if kind in PLAIN_KINDS:
                possible[first] = True
            else:
                possible[first + slots] = [
                    has_agent and _fits(scenario, host, kind)
                    for host, has_agent in enumerate(scenario.agents)
                ]
        return possible

    def _open_misinform_ports(self, scenario: Scenario) -> Bytes:
        """Ports of Misinform on which the hosts listen, as bits by slot."""
        ports = np.zeros(len(self._layout.slots), np.uint8)
        ports[scenario.slots(self._layout)] = [_misinform_bits(*host) for host in scenario.ports]
        return ports

    def is_of_kind(self, kind: str) -> Bools:
        """Actions of this kind, (actions,)."""
        kinds = np.array([name == kind for name in self._layout.kinds])
        return kinds[self.table.kinds]

    def _is_on_host(self, name: str) -> Bools:
        """Actions on the host of that name, (scenarios, actions)."""
        hosts = [
            scenario.hosts.index(name) if name in scenario.hosts else -2
            for scenario in self._scenarios
        ]
        is_host = self.slots.host_of_slot == np.array(hosts)[:, None]
        slots = self.table.slots  # -1: the last column, which is not that of the action
        on_host: Bools = is_host[:, slots] & (slots >= 0)
        return on_host


@lru_cache(maxsize=16)
def mask_tables(scenarios: tuple[Scenario, ...], layout: Layout) -> MaskTables:
    """The tables of these scenarios in this layout."""
    return MaskTables(scenarios, layout)


def _fits(scenario: Scenario, host: int, kind: str) -> bool:
    """Whether an action of this kind can succeed on a host with a blue agent."""
    if kind == _MISINFORM:
        return _misinform_bits(*scenario.ports[host]) != _ALL_MISINFORM_PORTS
    if not kind.startswith("Decoy"):
        return True
    decoy = kind.removeprefix("Decoy")
    excluded = _LINUX_DECOYS if scenario.windows[host] else _WINDOWS_DECOYS
    return decoy not in excluded and FREE_PORTS[decoy] not in scenario.ports[host]


def _misinform_bits(*ports: int) -> int:
    return sum(1 << bit for bit, port in enumerate(MISINFORM_PORTS) if port in ports)


_ALL_MISINFORM_PORTS = _misinform_bits(*MISINFORM_PORTS)
_MISINFORM_PORTS_OF_DECOYS = np.zeros(1 << 16, np.uint8)  # by the decoys on a host
for _bit, _port in _PORT_OF_BIT.items():
    _has_decoy = np.arange(1 << 16) >> _bit & 1 == 1
    _MISINFORM_PORTS_OF_DECOYS[_has_decoy] |= _misinform_bits(_port)


def action_masks(
    decoys: NDArray[np.uint16],
    *,
    scenario: Scenario = CAGE2,
    monitor: bool = True,
    defender: bool = True,
    user0: bool = True,
) -> Bools:
    """Masks, (games, actions), from the decoys on the hosts of each game.

    A decoy is masked where it cannot be placed: it never fits that host, or another decoy on the
    host has its port; Misinform, where no port is free. So are all actions on hosts without a
    blue agent. All other actions can always be played; the flags mask some of them.

    Args:
        decoys: `TrueState.decoys`. Blue knows them, because only blue places decoys.
        scenario: The scenario of all games.
        monitor: Allow Monitor.
        defender: Allow actions on Defender.
        user0: Allow actions on User0.
    """
    tables = mask_tables((scenario,), Layout.of((scenario,)))
    ids = np.zeros(len(decoys), np.int64)
    return tables.masks(decoys, ids, monitor=monitor, defender=defender, user0=user0)


class ActionMasks:
    """Action masks of N games from blue's actions, for environments without a true state.

    After every step, update it with the actions and reset the games whose episode ended:

        masks.update(batch.moves["blue_action"])
        masks.reset(np.flatnonzero(batch.truncations))
    """

    def __init__(
        self,
        games: int,
        *,
        scenario: Scenario = CAGE2,
        monitor: bool = True,
        defender: bool = True,
        user0: bool = True,
    ) -> None:
        """Start an episode in every game; for the flags see `action_masks`.

        Raises:
            ValueError: there is no game, or blue has Misinform, whose decoy is drawn by the game.
        """
        if games < 1:
            raise ValueError(f"masks must be for at least 1 game, got {games}")
        if _MISINFORM in scenario.action_kinds:
            raise ValueError(
                f"blue's actions do not tell which decoys Misinform has placed in {scenario.name}; "
                "use action_masks with the decoys of the true state"
            )
        self._tables = mask_tables((scenario,), Layout.of((scenario,)))
        self.decoys = np.zeros((games, len(scenario.hosts)), np.uint16)
        self._scenario_ids = np.zeros(games, np.int64)
        self._flags = {"monitor": monitor, "defender": defender, "user0": user0}

    @property
    def masks(self) -> Bools:
        """Current masks; see `action_masks`."""
        return self._tables.masks(self.decoys, self._scenario_ids, **self._flags)

    def reset(self, ids: Int64s | None = None) -> None:
        """Start a new episode in all games, or in those of `ids`."""
        self.decoys[slice(None) if ids is None else ids] = 0

    def update(self, actions: NDArray[np.integer], ids: Int64s | None = None) -> None:
        """Add the action that blue played in each game, or in those of `ids`.

        Raises:
            ValueError: there is not one action per game.
            IndexError: an action is out of range; nothing was changed.
        """
        table = self._tables.table
        games = np.arange(len(self.decoys)) if ids is None else ids
        if actions.shape != games.shape:
            raise ValueError(
                f"there must be one action per game, got {len(actions)} for {len(games)} games"
            )
        for game in np.flatnonzero((actions < 0) | (actions >= len(table))):
            raise IndexError(
                f"the action of game {games[game]} must be below {len(table)}, got {actions[game]}"
            )
        hosts = table.slots[actions]  # the slots of one scenario are its hosts
        placed = self.masks[games, actions]
        self.decoys[games[placed], hosts[placed]] |= self._tables.decoy_bits[actions[placed]]
        restored = self._tables.is_of_kind("Restore")[actions]
        self.decoys[games[restored], hosts[restored]] = 0


ActionSet: TypeAlias = Literal["all", "possible", "reduced", "core", "lean"]
ACTION_SETS = get_args(ActionSet)
_LEFT_OUT_KINDS = {
    "reduced": ("Monitor",),
    "core": ("Monitor",),
    "lean": ("Monitor", "Analyse", "DecoyVsftpd"),
}


def action_set(
    name: str, scenarios: Sequence[Scenario] = (CAGE2,), layout: Layout | None = None
) -> Int64s:
    """Indices of the actions of a set: those that the set has in at least one of the scenarios.

    `all` has all actions. `possible` leaves out decoys that never fit their host. `reduced` also
    leaves out Monitor, which the game plays at the end of every step, and all actions on hosts that
    are not worth it: see `worthwhile_hosts`. `core` also leaves out hosts of the role `op_host`,
    from which no official red agent gains anything. `lean` also leaves out Analyse, Vsftpd, which
    opens the port of Apache, and Remove on hosts of the role `op_server`. In CAGE-2 the sets have
    145, 82, 67, 46 and 33 actions.
    """
    if name not in ACTION_SETS:
        raise ValueError(f"actions must be one of {', '.join(ACTION_SETS)}; got {name!r}")
    layout = layout or Layout.of(scenarios)
    table = action_table(layout)
    if name == "all":
        return np.arange(len(table))
    tables = mask_tables(tuple(scenarios), layout)
    allowed = tables.possible.copy()
    left_out = _LEFT_OUT_KINDS.get(name)
    if left_out is not None:
        allowed &= ~np.isin(np.array(layout.kinds), left_out)[table.kinds]
        on_host = table.slots >= 0
        for index, scenario in enumerate(scenarios):
            slots = scenario.slots(layout)
            is_worth = np.zeros(len(layout.slots), np.bool_)
            is_worth[slots] = worthwhile_hosts(scenario, name)
            allowed[index] &= is_worth[table.slots] | ~on_host
            if name == "lean" and "Remove" in table.first:
                is_server = np.array([role == "op_server" for role in scenario.roles])
                allowed[index, table.first["Remove"] + slots[is_server]] = False
    return np.flatnonzero(allowed.any(axis=0))


def worthwhile_hosts(scenario: Scenario, name: str) -> Bools:
    """Hosts of an action set, (hosts,).

    Hosts with an agent of blue that red can take, without User0, from which red cannot be removed;
    in `core` and `lean` without hosts of the role `op_host`.
    """
    is_taken = [any(accounts.values()) for accounts in scenario.vulnerabilities]
    is_user0 = [host == "User0" for host in scenario.hosts]
    hosts: Bools = np.array(scenario.agents) & np.array(is_taken) & ~np.array(is_user0)
    if name in ("core", "lean"):
        hosts &= np.array([role != "op_host" for role in scenario.roles])
    return hosts

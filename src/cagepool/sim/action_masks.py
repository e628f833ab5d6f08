"""Action masks: the actions that can succeed, from facts that blue knows."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cagepool.scenarios import CAGE2, Layout, Scenario
from cagepool.scenarios.vocabulary import PLAIN_KINDS
from cagepool.sim.names import DECOYS
from cagepool.sim.slots import ScenarioIds, action_table, slot_tables
from cagepool.types import Bools, Bytes, Int64s

DECOY_PORTS: Final = {  # that a decoy opens (docs/rules.md, 1.5)
    "Apache": 80,
    "Femitter": 21,
    "HarakaSMPT": 25,
    "Smss": 139,
    "SSHD": 22,
    "Svchost": 3389,
    "Tomcat": 443,
    "Vsftpd": 80,
}
FREE_PORTS: Final = {**DECOY_PORTS, "Vsftpd": 21}  # that must be free before (Q1)
_WINDOWS_DECOYS = ("Femitter", "Smss", "Svchost")
_LINUX_DECOYS = ("HarakaSMPT", "Vsftpd")
# Ports by bit of the true state's decoys; bits 14 and 15 are placed by Misinform (Q28).
_PORT_OF_BIT: Final = {
    **{bit: DECOY_PORTS[name] for bit, name in enumerate(DECOYS)},
    14: 139,
    15: 3389,
}
MISINFORM_PORTS = (22, 80, 139, 443, 3389)
_MISINFORM = "Misinform"


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
        self._possible = np.stack([self._possible_actions(scenario) for scenario in scenarios])
        lasts = self.decoy_bits == 0
        if _MISINFORM in layout.kinds:
            lasts[self._actions_of(_MISINFORM)] = False
            self._open_ports = np.stack([self._open_misinform_ports(s) for s in scenarios])
        # Where blue has nothing but decoys, there may be nothing left to place.
        self._can_run_out = not (self._possible & lasts).any(axis=1).all()

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
        masks: Bools = self._possible.take(scenario_ids, 0)
        for actions, blockers in self._blockers:
            masks[:, actions] &= (placed & blockers) == 0
        if _MISINFORM in self._layout.kinds:
            opened = _MISINFORM_PORTS_OF_DECOYS[placed] | self._open_ports[scenario_ids]
            masks[:, self._actions_of(_MISINFORM)] &= opened != _ALL_MISINFORM_PORTS
        if self._can_run_out:
            stuck = ~masks.any(axis=1)
            masks[stuck] = self._possible[scenario_ids[stuck]]
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
        scenario: The network, the same in all games.
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
        self._decoys = np.zeros((games, len(scenario.hosts)), np.uint16)
        self._scenario_ids = np.zeros(games, np.int64)
        self._flags = {"monitor": monitor, "defender": defender, "user0": user0}

    @property
    def masks(self) -> Bools:
        """Current masks; see `action_masks`."""
        return self._tables.masks(self._decoys, self._scenario_ids, **self._flags)

    def reset(self, ids: Int64s | None = None) -> None:
        """Start a new episode in all games, or in those of `ids`."""
        self._decoys[slice(None) if ids is None else ids] = 0

    def update(self, actions: NDArray[np.integer], ids: Int64s | None = None) -> None:
        """Add the action that blue played in each game, or in those of `ids`.

        Raises:
            ValueError: there is not one action per game.
            IndexError: an action is out of range; nothing was changed.
        """
        table = self._tables.table
        games = np.arange(len(self._decoys)) if ids is None else ids
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
        self._decoys[games[placed], hosts[placed]] |= self._tables.decoy_bits[actions[placed]]
        restored = self._tables.is_of_kind("Restore")[actions]
        self._decoys[games[restored], hosts[restored]] = 0

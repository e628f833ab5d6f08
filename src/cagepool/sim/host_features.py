"""Policy features host by host, for networks of any size: what an entity network sees.

A row of features is a block of shared features, then one block of equal size per slot of the
layout. Columns `PRESENT` and `SUBNET` of a block say whether the game's network has that host, and
which of its subnets the host is in. The choices of a policy are the actions without a host, then
one choice per kind of action and slot.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from cagepool.scenarios import CAGE2, Layout, Scenario
from cagepool.scenarios.vocabulary import PLAIN_KINDS
from cagepool.sim import graph
from cagepool.sim.action_masks import DECOY_PORTS, FREE_PORTS, MISINFORM_PORTS, mask_tables
from cagepool.sim.features import FeatureConfig
from cagepool.sim.names import DECOYS, EXPLOITS
from cagepool.sim.slots import ScenarioIds, action_table
from cagepool.types import Arrays, Bools, Bytes, Float32s, HostBlocks, Int64s

DECOY_KINDS = tuple(f"Decoy{decoy}" for decoy in DECOYS)
KINDS = (*PLAIN_KINDS, "Analyse", "Remove", *DECOY_KINDS, "Restore", "Misinform")
"""Kinds of blue's actions, in the order of a policy's choices."""
ACTION_SETS = ("all", "possible", "reduced", "lean")
"""Values of `--actions` that do not go by the names of the built-in network's hosts."""
PRESENT, SUBNET = 0, 1

_NEEDED, _OPENED = ([ports[decoy] for decoy in DECOYS] for ports in (FREE_PORTS, DECOY_PORTS))
_BLOCKS = np.equal.outer(_OPENED, _NEEDED)  # [i, j]: decoy i takes the port that decoy j needs
_TAKES_MISINFORM = np.isin(_OPENED, MISINFORM_PORTS)
_LAST_KINDS = ("Analyse", "Remove", "Decoy", "Restore", "Misinform")
_MAX_SUBNETS = 16
_MAX_HOSTS = 64
_THIRD = 2  # position in the list of a subnet's members; B_lineAgent goes by it
_EXPLOIT_COLUMNS = tuple(
    [graph.STATIC_FEATURES.index(f"{account}_{exploit}") for exploit in EXPLOITS]
    for account in ("user", "privileged")
)
_OTHER_COLUMNS = [
    graph.STATIC_FEATURES.index(name)
    for name in (
        *("windows", "many_ports", "ot_service", "agent", "monitored"),
        *("gate_key", "op_server0", "user0", "gated", "closed"),
        *(f"confidentiality_{value}" for value in ("Low", "Medium", "High")),
        *(f"availability_{value}" for value in ("Low", "Medium", "High")),
    )
]


class _Columns(NamedTuple):
    """Columns of a host's block."""

    static: slice  # PRESENT, SUBNET, then what `_static_table` writes
    observation: slice
    scans: slice  # activity so far, exploit so far, last activity
    links: slice  # a host that reveals this one was exploited, or had the last activity
    decoys: slice
    free: slice  # decoys that can be placed now
    misinform: slice  # number placed, whether another one can be
    last_action: slice
    restored: slice

    @classmethod
    def of_widths(cls, *widths: int) -> "_Columns":
        ends = np.cumsum(widths).tolist()
        return cls(*(slice(end - width, end) for end, width in zip(ends, widths, strict=True)))


_STATIC = 2 + len(EXPLOITS) + len(_OTHER_COLUMNS) + 3
COLUMNS = _Columns.of_widths(_STATIC, 4, 3, 2, len(DECOYS), len(DECOYS), 2, len(_LAST_KINDS), 1)
HOST_FEATURES = COLUMNS.restored.stop
_CLOCK_FEATURES = 16
_TIME, _CLOCK, _LAST_PLAIN, _SIZE = _SHARED = (
    slice(0, 1),
    slice(1, 1 + _CLOCK_FEATURES),
    slice(1 + _CLOCK_FEATURES, 1 + _CLOCK_FEATURES + len(PLAIN_KINDS)),
    slice(1 + _CLOCK_FEATURES + len(PLAIN_KINDS), 3 + _CLOCK_FEATURES + len(PLAIN_KINDS)),
)
SHARED_FEATURES = _SIZE.stop


@dataclass(frozen=True, eq=False)
class PlayedNetworks:
    """Networks that a set of games plays."""

    scenarios: tuple[Scenario, ...]
    layout: Layout
    ids: ScenarioIds  # (games,), number of each game's scenario; the batch keeps it current

    @property
    def is_built_in(self) -> bool:
        """Whether all games play the built-in network, with its own slots and actions."""
        return self.layout == Layout.of([CAGE2]) and {s.hash for s in self.scenarios} == {
            CAGE2.hash
        }


class GamesOfNetworks(Protocol):
    """Games that know which networks they play, such as a `Batch`."""

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """Networks of the games."""

    @property
    def layout(self) -> Layout:
        """Slots of the observations, and kinds of the actions."""

    @property
    def scenario_ids(self) -> ScenarioIds:
        """Number of each game's scenario."""


def played_networks(games: GamesOfNetworks) -> PlayedNetworks:
    """The networks of a batch of games."""
    return PlayedNetworks(games.scenarios, games.layout, games.scenario_ids)


def built_in_networks(games: int, layout: Layout | None = None) -> PlayedNetworks:
    """The built-in network in this many games, in another layout if one is given."""
    return PlayedNetworks((CAGE2,), layout or Layout.of([CAGE2]), np.zeros(games, np.int32))


def choice_kinds(layout: Layout, actions: str) -> tuple[str, ...]:
    """Kinds of the choices of a policy that is trained with this layout and action set.

    `all` and `possible` have all kinds, `reduced` all except Monitor, and `lean` also leaves out
    Analyse and DecoyVsftpd. All except `all` mask decoys that never fit their host; the last two
    also mask hosts that red cannot take or be removed from, and hosts without an agent of blue.

    Raises:
        ValueError: the action set goes by the names of the built-in network's hosts.
    """
    if actions not in ACTION_SETS:
        raise ValueError(
            f"features.actions of a scenario must be one of {', '.join(ACTION_SETS)}; "
            f"got {actions!r}"
        )
    left_out: tuple[str, ...] = ()
    if actions == "reduced":
        left_out = ("Monitor",)
    elif actions == "lean":
        left_out = ("Monitor", "Analyse", "DecoyVsftpd")
    return tuple(kind for kind in KINDS if kind in layout.kinds and kind not in left_out)


class HostFeatureEncoder:
    """Encodes observations and the history of each episode, host by host.

    The features and masks of all games are kept and changed in place, so that a step costs only
    what it changes.
    """

    def __init__(
        self,
        config: FeatureConfig,
        networks: PlayedNetworks,
        *,
        horizon: int,
        kinds: tuple[str, ...] | None = None,
    ) -> None:
        """Start an episode in every game.

        Args:
            config: Features and action set.
            networks: Networks of the games.
            horizon: Episode length behind `time_left` and `clock`.
            kinds: Kinds of the policy's choices; by default those of the layout and action set.
                Choices of a kind that the layout lacks are masked.

        Raises:
            ValueError: the action set goes by the names of the built-in network's hosts.
        """
        self.config = config
        self.networks = networks
        layout = networks.layout
        games, slots = len(networks.ids), len(layout.slots)
        self.kinds = choice_kinds(layout, config.actions) if kinds is None else kinds
        self.plain_kinds = tuple(kind for kind in self.kinds if kind in PLAIN_KINDS)
        self.host_kinds = self.kinds[len(self.plain_kinds) :]
        self.blocks = HostBlocks(SHARED_FEATURES, HOST_FEATURES, self.plain_kinds, self.host_kinds)
        self.size = SHARED_FEATURES + slots * HOST_FEATURES
        self.n_choices = len(self.plain_kinds) + slots * len(self.host_kinds)
        self.action_indices = _choice_actions(layout, self.plain_kinds, self.host_kinds)
        actions = action_table(layout)
        self._action_slots = actions.slots
        self._action_kinds = np.array([KINDS.index(kind) for kind in layout.kinds])[actions.kinds]
        self._tables = _Tables(networks, self.plain_kinds, self.host_kinds, config.actions)
        self._rows: Float32s = np.zeros((games, self.size), np.float32)
        self._masks: Bytes = np.zeros((games, self.n_choices), np.uint8)
        self._links: Float32s = np.zeros((games, slots, slots), np.float32)
        self._steps: Int64s = np.zeros(games, np.int64)
        self._last_slots: Int64s = np.full(games, -1)
        self._shared = self._rows[:, :SHARED_FEATURES]
        self._hosts = self._rows[:, SHARED_FEATURES:].reshape(games, slots, HOST_FEATURES)
        self._host_masks = self._masks[:, len(self.plain_kinds) :].reshape(games, -1, slots)
        self._decoy_rows = [self.host_kinds.index(k) for k in DECOY_KINDS if k in self.host_kinds]
        self._decoy_ids = [DECOY_KINDS.index(self.host_kinds[row]) for row in self._decoy_rows]
        self._clock = _clock_rows(horizon)
        self._hidden = _hidden_columns(config, slots)
        self.reset(np.arange(games))

    @property
    def slots(self) -> int:
        """Host slots of the layout."""
        return len(self.networks.layout.slots)

    def reset(self, ids: Int64s) -> None:
        """Start a new episode in these games, in the networks that they play now."""
        scenarios = self.networks.ids[ids]
        self._rows[ids] = 0
        self._hosts[ids, :, COLUMNS.static] = self._tables.static[scenarios]
        self._shared[ids, _SIZE] = self._tables.sizes[scenarios]
        self._links[ids] = self._tables.links[scenarios]
        self._masks[ids] = self._tables.masks[scenarios]
        self._steps[ids] = 0
        self._last_slots[ids] = -1
        self._shared[ids, : _CLOCK.stop] = self._clock[0]
        self._hosts[ids, :, COLUMNS.free] = self._tables.fits[scenarios]
        self._hosts[ids, :, COLUMNS.misinform.stop - 1] = self._tables.misinforms[scenarios] > 0

    def update(self, actions: Int64s, observations: Float32s, ids: Int64s | None = None) -> None:
        """Add a step to the history of all games, or of those of `ids`.

        Args:
            actions: Blue's actions, one per game of the encoder.
            observations: The observations that followed, likewise.
            ids: Games that have played the step.
        """
        games = np.arange(len(self._rows)) if ids is None else ids
        self._add_actions(games, actions[games])
        self._steps[games] += 1
        steps = np.minimum(self._steps[games], len(self._clock) - 1)
        self._shared[games, : _CLOCK.stop] = self._clock[steps]
        self._add_observations(games, observations[games])

    def encode(self, observations: Float32s, features: Float32s, masks: Bytes | None) -> None:
        """Write the current features, (games, size), and masks, (games, n_choices).

        Raises:
            ValueError: the observations do not have four columns per host slot.
        """
        columns = observations.shape[1]
        if columns != 4 * self.slots:
            raise ValueError(f"observations must have {4 * self.slots} columns, got {columns}")
        self._hosts[:, :, COLUMNS.observation] = observations.reshape(-1, self.slots, 4)
        features[:] = self._rows
        if len(self._hidden):
            features[:, self._hidden] = 0
        if masks is not None:
            masks[:] = self._masks

    def state(self) -> Arrays:
        """History of all games, for `restore`."""
        return {name: array.copy() for name, array in self._history().items()}

    def restore(self, arrays: Arrays) -> None:
        """Continue from what `state` returned, in the networks that the games play now.

        Raises:
            ValueError: an array is missing or of other settings.
        """
        for name, own in self._history().items():
            if name not in arrays or arrays[name].shape != own.shape:
                raise ValueError(f"the saved {name} must have the shape {own.shape}")
            own[:] = arrays[name]
        self._links[:] = self._tables.links[self.networks.ids]

    def _history(self) -> Arrays:
        return {
            "host_rows": self._rows,
            "host_masks": self._masks,
            "host_steps": self._steps,
            "host_last_slots": self._last_slots,
        }

    def _add_actions(self, games: Int64s, actions: Int64s) -> None:
        kinds, slots = self._action_kinds[actions], self._action_slots[actions]
        self._shared[games, _LAST_PLAIN] = kinds[:, None] == np.arange(len(PLAIN_KINDS))
        last = self._last_slots[games]
        self._hosts[games, last, COLUMNS.last_action] = 0  # slot -1 of other games has none
        self._last_slots[games] = slots
        on_host = np.flatnonzero(slots >= 0)
        games, kinds, slots = games[on_host], kinds[on_host], slots[on_host]
        groups = COLUMNS.last_action.start + _LAST_GROUP[kinds]
        self._hosts[games, slots, groups] = 1
        changes = np.flatnonzero(_CHANGES_DECOYS[kinds])
        self._place_decoys(games[changes], kinds[changes], slots[changes])

    def _place_decoys(self, games: Int64s, kinds: Int64s, slots: Int64s) -> None:
        """Add decoys, or take them away by Restore, and renew what can be placed there."""
        if not len(games):
            return
        hosts = self._hosts[games, slots]
        scenarios = self.networks.ids[games]
        placed, free = hosts[:, COLUMNS.decoys], hosts[:, COLUMNS.free]
        count = hosts[:, COLUMNS.misinform]
        is_restored = kinds == KINDS.index("Restore")
        decoys = kinds[:, None] - KINDS.index(DECOY_KINDS[0]) == np.arange(len(DECOYS))
        np.maximum(placed, decoys & (free > 0), out=placed)
        count[:, 0] += (kinds == KINDS.index("Misinform")) & (count[:, 1] > 0)
        placed[is_restored] = 0
        count[is_restored, 0] = 0
        hosts[is_restored, COLUMNS.restored] = 1
        free[:] = self._tables.fits[scenarios, slots] * (placed @ _BLOCKS == 0)
        taken = count[:, 0] + placed @ _TAKES_MISINFORM
        count[:, 1] = self._tables.misinforms[scenarios, slots] > taken
        self._hosts[games, slots] = hosts
        self._renew_masks(games, slots, scenarios)

    def _renew_masks(self, games: Int64s, slots: Int64s, scenarios: ScenarioIds) -> None:
        if self.config.actions == "all":
            return
        allowed = self._tables.host_masks[scenarios, :, slots]
        hosts = self._hosts[games, slots]
        allowed[:, self._decoy_rows] *= hosts[:, COLUMNS.free][:, self._decoy_ids] > 0
        if "Misinform" in self.host_kinds:
            allowed[:, self.host_kinds.index("Misinform")] *= (
                hosts[:, COLUMNS.misinform.stop - 1] > 0
            )
        self._host_masks[games, :, slots] = allowed

    def _add_observations(self, games: Int64s, observations: Float32s) -> None:
        seen = observations.reshape(len(games), -1, 4)
        active = np.maximum(seen[:, :, 0], seen[:, :, 1])
        exploited = np.minimum(seen[:, :, 0], seen[:, :, 1])
        scans = self._hosts[games, :, COLUMNS.scans]
        np.maximum(scans[:, :, 0], active, out=scans[:, :, 0])
        np.maximum(scans[:, :, 1], exploited, out=scans[:, :, 1])
        is_active = active.any(1)
        scans[is_active, :, 2] = active[is_active]
        self._hosts[games, :, COLUMNS.scans] = scans
        self._hosts[games, :, COLUMNS.links] = np.minimum(self._links[games] @ scans[:, :, 1:], 1)


def _choice_actions(
    layout: Layout, plain_kinds: tuple[str, ...], host_kinds: tuple[str, ...]
) -> Int64s:
    """Action of each choice; 0 for kinds that the layout lacks, which are masked."""
    first, slots = action_table(layout).first, np.arange(len(layout.slots))
    plain = [first.get(kind, 0) for kind in plain_kinds]
    on_slots = [(first[kind] + slots) if kind in first else 0 * slots for kind in host_kinds]
    return np.concatenate([plain, *on_slots]).astype(np.int64)


class _Tables:
    """What the scenarios of the games decide, by scenario and slot."""

    static: Float32s  # (scenarios, slots, _STATIC)
    links: Float32s  # (scenarios, slots, slots), [i, j]: host j reveals host i
    fits: Bools  # (scenarios, slots, decoys), decoys that can be placed without others
    misinforms: Int64s  # (scenarios, slots), Misinforms that find a free port
    host_masks: Bytes  # (scenarios, kinds, slots), at the start of an episode
    masks: Bytes  # (scenarios, choices), likewise
    sizes: Float32s  # (scenarios, 2), hosts and subnets

    def __init__(
        self,
        networks: PlayedNetworks,
        plain_kinds: tuple[str, ...],
        host_kinds: tuple[str, ...],
        actions: str,
    ) -> None:
        scenarios, layout = networks.scenarios, networks.layout
        tables = graph.host_tables(scenarios, layout)
        is_host = tables.slots.mask
        count, slots = is_host.shape
        self.links = np.zeros((count, slots, slots), np.float32)
        self.misinforms = np.zeros((count, slots), np.int64)
        is_third = np.zeros((count, slots), np.float32)
        for number, scenario in enumerate(scenarios):
            slot_of = scenario.slots(layout)
            for host, revealed in graph.links(scenario):
                self.links[number, slot_of[revealed], slot_of[host]] = 1
            self.misinforms[number, slot_of] = _free_misinforms(scenario)
            thirds = [members[_THIRD] for members in scenario.members if len(members) > _THIRD]
            is_third[number, slot_of[thirds]] = 1
        self.static = _static_table(tables, self.links, is_third)
        possible = _possible_on_slots(networks)
        self.fits = np.stack([possible(kind) for kind in DECOY_KINDS], 2)
        if actions == "all":
            has_kind = [[kind in one.action_kinds for kind in host_kinds] for one in scenarios]
            host_masks = np.array(has_kind)[:, :, None] & is_host[:, None]
        else:
            host_masks = np.stack([possible(kind) for kind in host_kinds], 1)
        if actions not in ("all", "possible"):
            host_masks &= _worthwhile_hosts(tables)[:, None]
        self.host_masks = host_masks.astype(np.uint8)
        plain = [[kind in scenario.action_kinds for kind in plain_kinds] for scenario in scenarios]
        self.masks = np.concatenate(
            [np.array(plain, np.uint8), self.host_masks.reshape(count, -1)], 1
        )
        subnets = [len(scenario.subnets) / _MAX_SUBNETS for scenario in scenarios]
        self.sizes = np.stack([is_host.sum(1) / _MAX_HOSTS, subnets], 1).astype(np.float32)


def _static_table(tables: graph.HostTables, links: Float32s, is_third: Float32s) -> Float32s:
    """Static columns of a host's block, (scenarios, slots, _STATIC)."""
    user, privileged = (tables.static[..., columns] for columns in _EXPLOIT_COLUMNS)
    return np.concatenate(
        [
            tables.slots.mask[..., None],
            np.maximum(tables.subnet_of, 0)[..., None] / _MAX_SUBNETS,
            privileged + user / 2,
            tables.static[..., _OTHER_COLUMNS],
            is_third[..., None],
            np.minimum(links.sum((2,))[..., None] / 4, 1),  # hosts that reveal this one
            np.minimum(links.sum((1,))[..., None], 1),
        ],
        2,
        dtype=np.float32,
    )


def _possible_on_slots(networks: PlayedNetworks) -> Callable[[str], Bools]:
    """Function from a kind of action to the slots where it can succeed, (scenarios, slots)."""
    scenarios, layout = networks.scenarios, networks.layout
    most = max(len(scenario.hosts) for scenario in scenarios)
    no_decoys = np.zeros((len(scenarios), most), np.uint16)
    masks = mask_tables(scenarios, layout).masks(no_decoys, np.arange(len(scenarios)))
    first, slots = action_table(layout).first, len(layout.slots)

    def possible(kind: str) -> Bools:
        if kind not in first:
            return np.zeros((len(scenarios), slots), np.bool_)
        return masks[:, first[kind] : first[kind] + slots]

    return possible


def _worthwhile_hosts(tables: graph.HostTables) -> Bools:
    """Hosts with an agent of blue that red can take, without User0, (scenarios, slots)."""
    user, privileged = (tables.static[..., columns] for columns in _EXPLOIT_COLUMNS)
    has_agent, is_user0 = (
        tables.static[..., graph.STATIC_FEATURES.index(name)] > 0 for name in ("agent", "user0")
    )
    takeable: Bools = np.asarray((user + privileged).any(2))
    return takeable & has_agent & ~is_user0


def _free_misinforms(scenario: Scenario) -> list[int]:
    return [
        has_agent * sum(port not in ports for port in MISINFORM_PORTS)
        for ports, has_agent in zip(scenario.ports, scenario.agents, strict=True)
    ]


def _clock_rows(horizon: int) -> Float32s:
    """Time left and clock by step, as in cpp/policy/features.cpp."""
    steps = np.arange(horizon + 1)
    left = horizon - steps
    rows = np.zeros((len(steps), _CLOCK.stop), np.float32)
    rows[:, 0] = left / horizon
    rows[:, 1] = steps / horizon
    for column, scale in enumerate((2, 5, 12), 2):
        rows[:, column] = np.exp2(-left / scale)
    rows[:, 5], rows[:, 6] = steps >= 30, steps >= 50
    first = _CLOCK.start + 6
    shown = np.arange(min(len(steps), _CLOCK.stop - first))
    rows[shown, first + shown] = 1
    return rows


def _hidden_columns(config: FeatureConfig, slots: int) -> Int64s:
    """Columns of a row of features that the settings turn off."""
    shared = np.zeros(SHARED_FEATURES, np.bool_)
    host = np.zeros(HOST_FEATURES, np.bool_)
    shared[_TIME] = not config.time_left
    shared[_CLOCK] = not config.clock
    shared[_LAST_PLAIN] = host[COLUMNS.last_action] = not config.last_action
    host[COLUMNS.observation] = not config.observation
    host[COLUMNS.scans] = host[COLUMNS.links] = not config.scan_memory
    host[COLUMNS.decoys] = host[COLUMNS.misinform] = not config.decoys_placed
    host[COLUMNS.restored] = not config.hosts_restored
    return np.flatnonzero(np.concatenate([shared, np.tile(host, slots)]))


def _last_group(kind: str) -> int:
    group = "Decoy" if kind in DECOY_KINDS else kind
    return _LAST_KINDS.index(group) if group in _LAST_KINDS else 0


_LAST_GROUP: Int64s = np.array([_last_group(kind) for kind in KINDS])
_CHANGES_DECOYS: Bools = np.array(
    [kind in (*DECOY_KINDS, "Restore", "Misinform") for kind in KINDS]
)

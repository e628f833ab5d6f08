"""Policy inputs: features and masks from the history of an episode, and subsets of blue's actions.

A row of features has one of two forms. *Flat*, for one scenario: group by group. In *blocks*, for
any number of scenarios: shared features, then one block of equal size per slot of the layout.
`PRESENT` and `SUBNET` of a block say whether the scenario has that host, and in which subnet the
host is; the choices are the actions without a host, then one per kind of action and slot.
"""

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np

from cagepool import _core
from cagepool.scenarios import CAGE2, Layout, Scenario
from cagepool.scenarios.vocabulary import PLAIN_KINDS
from cagepool.sim import dtypes, graph
from cagepool.sim.belief import BELIEF_FEATURES, BeliefConfig, BeliefFilter
from cagepool.sim.compliance import order_number
from cagepool.sim.masks import (
    MISINFORM_PORTS,
    ActionSet,
    ScenarioIds,
    action_set,
    action_table,
    mask_tables,
)
from cagepool.sim.names import DECOYS, EXPLOITS
from cagepool.types import Arrays, Bools, Bytes, Float32s, HostBlocks, Int64s

CriticInputs: TypeAlias = Literal["same", "true"]

_DECOY_KINDS = tuple(f"Decoy{decoy}" for decoy in DECOYS)
_KINDS = (*PLAIN_KINDS, "Analyse", "Remove", *_DECOY_KINDS, "Restore", "Misinform")
_MAX_SUBNETS = 16
_MAX_HOSTS = _core.MAX_HOSTS
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
PRESENT, SUBNET = 0, 1
FACTS = 2 + len(EXPLOITS) + len(_OTHER_COLUMNS) + 3
"""Features of a block that the scenario decides: `PRESENT`, `SUBNET`, what `_host_facts` adds."""
SHARED_FEATURES = _core.SHARED_FEATURES
HOST_FEATURES = FACTS + sum(count for _, count in _core.slot_features())


def parse_biases(text: str) -> dict[str, float]:
    """Biases by kind of action, from text such as `Restore=-2,Decoy=1`."""
    kinds = [kind.name.capitalize() for kind in _core.BlueKind]
    biases = {}
    for part in text.split(","):
        name, _, number = part.partition("=")
        try:
            bias = float(number)
        except ValueError:
            bias = float("nan")
        if name.strip() not in kinds or not np.isfinite(bias):
            raise ValueError(
                f"start_bias must be numbers by kind of action ({', '.join(kinds)}), such as "
                f"Restore=-2, got {text!r}"
            )
        biases[name.strip()] = bias
    return biases


@dataclass(frozen=True, kw_only=True)
class FeatureConfig:
    """Policy features beside the observation, and the action set."""

    observation: bool = True
    """Feature: the 52 values that blue observes. Off: the policy sees only the other features."""
    scan_memory: bool = True
    """Feature: hosts with activity or an exploit so far, and the host where it was seen last.
    Off: the policy sees only the scans in the present observation."""
    decoys_placed: bool = True
    """Feature: decoys that blue has placed and not removed by Restore.
    Off: the policy does not know its decoys."""
    last_action: bool = True
    """Feature: kind and host of blue's last action. Off: the policy does not know it."""
    time_left: bool = True
    """Feature: share of max_steps that is left. Off: the policy does not know the time."""
    clock: bool = False
    """Feature: time passed, nearness of the end on three time scales, official lengths that have
    passed, and the first ten steps, 16 values. Off: only time_left tells the time."""
    hosts_restored: bool = False
    """Feature: hosts that blue has restored in this episode.
    Off: the policy does not know them."""
    belief: bool = False
    """Feature: the exact belief about red, by Bayes' rule (docs/belief.md): sessions, knowledge
    and next action. Off: the policy has to infer them."""
    order_input: bool = False
    """Feature: the workflow order, 5 x 5 values. Off: the policy does not see the order."""
    action_masking: bool = True
    """Mask decoys that cannot be placed now.
    Off: the policy can choose them, and they fail."""
    actions: ActionSet = "reduced"
    """Action set. all: 145 actions. possible: without decoys that never fit their host.
    reduced: also without Monitor, Defender and User0. core: also without operational hosts.
    lean: the 33 that good defenders use, without Analyse (docs/training.md)."""
    critic_inputs: CriticInputs = "same"
    """Inputs of the critic, which only training needs. same: those of the actor.
    true: also the true state of the game, which the actor never sees."""


class ScenarioGames(Protocol):
    """Games that know their scenarios: a `Batch`, or `GameScenarios`."""

    @property
    def games(self) -> int:
        """Number of games."""

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """Scenarios of the games."""

    @property
    def layout(self) -> Layout:
        """Slots of the observations, and kinds of the actions."""

    @property
    def scenario_ids(self) -> ScenarioIds:
        """Number of each game's scenario."""


@dataclass(frozen=True, eq=False)
class GameScenarios:
    """Scenarios that a set of games plays."""

    scenarios: tuple[Scenario, ...]
    layout: Layout
    scenario_ids: ScenarioIds  # (games,); the batch keeps it current

    @classmethod
    def of_cage2(cls, games: int, layout: Layout | None = None) -> "GameScenarios":
        """CAGE-2 in this many games, in another layout if one is given."""
        return cls((CAGE2,), layout or Layout.of([CAGE2]), np.zeros(games, np.int32))

    @property
    def games(self) -> int:
        """Number of games."""
        return len(self.scenario_ids)


def is_cage2(games: ScenarioGames) -> bool:
    """Whether all games play CAGE-2, in its own layout."""
    hashes = {scenario.hash for scenario in games.scenarios}
    return hashes == {CAGE2.hash} and games.layout == Layout.of([CAGE2])


class FeatureEncoder:
    """Encodes observations and the history of each episode as policy features and masks.

    `history`, one record per game, and the belief are the whole state of the encoder.
    """

    def __init__(
        self,
        config: FeatureConfig,
        games: int | ScenarioGames,
        *,
        horizon: int,
        belief: BeliefConfig | None = None,
        blocks: bool | tuple[str, ...] = False,
    ) -> None:
        """Start an episode in every game.

        Args:
            config: Features and action set.
            games: Games and their scenarios; a number: games of CAGE-2.
            horizon: Episode length behind `time_left` and `clock`.
            belief: What blue assumes about the game, if the belief is a feature.
            blocks: Rows in blocks, else flat. Names are the kinds of the policy's choices, if they
                are not those of the layout and the action set; kinds that the layout lacks are
                masked.

        Raises:
            ValueError: these scenarios do not have such features.
        """
        self.config = config
        self.games = GameScenarios.of_cage2(games) if isinstance(games, int) else games
        self.blocks: HostBlocks | None = None  # None: the form is flat
        _check_form(config, self.games, is_flat=blocks is False)
        layout = self.games.layout
        self.slots = len(layout.slots)
        tables = _Tables(self.games.scenarios, layout)
        if blocks is not False:
            kinds = _choice_kinds(layout, config.actions) if blocks is True else blocks
            self.blocks = _host_blocks(kinds)
            choices = _block_choices(layout, self.blocks)
        else:
            choices = action_set(config.actions, self.games.scenarios, layout)
        self.action_indices = np.maximum(choices, 0)
        self.n_choices = len(choices)
        actions = action_table(layout)
        kind_bits = np.array([_kind_bit(kind) for kind in layout.kinds])
        self.core = _core.FeatureEncoder(
            slots=self.slots,
            action_kinds=kind_bits[actions.kinds].tolist(),
            action_slots=actions.slots.tolist(),
            choices=self.action_indices.tolist(),
            possible=np.ascontiguousarray(tables.possible(choices, config.actions), np.uint8),
            fitting=np.ascontiguousarray(tables.fitting),
            misinforms=tables.misinforms,
            revealed_by=tables.revealed_by,
            facts=np.ascontiguousarray(tables.facts.reshape(-1, FACTS)),
            sizes=tables.sizes,
            groups=[name for name in _core.feature_groups() if getattr(config, name)],
            blocks=self.blocks is not None,
            horizon=horizon,
            appended=BELIEF_FEATURES if config.belief else 0,
        )
        self.size = self.core.size
        self.history = np.zeros(self.games.games, dtypes.HISTORY)
        self.belief = BeliefFilter(self.games.games, belief) if config.belief else None
        self.reset()

    def reset(self, ids: Int64s | slice = slice(None)) -> None:
        """Start a new episode in these games, in the scenarios that they play now.

        Their orders stay.
        """
        orders = self.history["order"][ids].copy()
        dtypes.as_bytes(self.history)[ids] = 0  # also what has no name in Python
        self.history["order"][ids] = orders
        self.history["scenario"][ids] = self.games.scenario_ids[ids]
        if self.belief is not None:
            self.belief.reset(np.arange(len(self.history))[ids])

    def set_order(self, order: str | Bytes, ids: Int64s | slice = slice(None)) -> None:
        """Set the workflow order of these games, by name or one number per game."""
        self.history["order"][ids] = order_number(order) if isinstance(order, str) else order

    def update(self, actions: Int64s, observations: Float32s, ids: Int64s | None = None) -> None:
        """Add a step to the history of all games, or of those of `ids`.

        Args:
            actions: Blue's actions, one per game of the encoder.
            observations: The observations that followed, likewise.
            ids: Games that have played the step.
        """
        histories = dtypes.as_bytes(self.history)
        if ids is None:
            self.core.update(actions, observations, histories)
        else:
            actions, observations = actions[ids], observations[ids]
            rows = histories[ids]
            self.core.update(actions, observations, rows)
            histories[ids] = rows
        if self.belief is not None:
            self.belief.update(actions, observations, ids)

    def encode(self, observations: Float32s, features: Float32s, masks: Bytes | None) -> None:
        """Write the current features, (games, size), and masks, (games, n_choices)."""
        self.core.encode(observations, dtypes.as_bytes(self.history), features, masks)
        if self.belief is not None:
            self.belief.write_features(features, column=self.size - BELIEF_FEATURES)

    def state(self) -> Arrays:
        """History and belief of all games, for `restore`."""
        belief = {} if self.belief is None else self.belief.state()
        return {"history": dtypes.as_bytes(self.history).copy(), **belief}

    def restore(self, arrays: Arrays) -> None:
        """Continue from what `state` returned.

        Raises:
            ValueError: the arrays are missing, damaged or of other settings.
        """
        own = dtypes.as_bytes(self.history)
        if "history" not in arrays or arrays["history"].shape != own.shape:
            raise ValueError(f"the saved history must have the shape {own.shape}")
        own[:] = arrays["history"]
        if self.belief is not None:
            self.belief.restore(arrays)


def _check_form(config: FeatureConfig, games: ScenarioGames, *, is_flat: bool) -> None:
    if config.belief and not (is_flat and is_cage2(games)):
        raise ValueError("the belief is a feature of CAGE-2 in flat form only")
    if is_flat and len(games.scenarios) > 1:
        raise ValueError(
            f"flat features need games of one scenario, got {len(games.scenarios)}: use blocks"
        )


def _kind_bit(kind: str) -> int:
    if kind in _DECOY_KINDS:
        return _core.kind_bit(_core.BlueKind.DECOY, _DECOY_KINDS.index(kind))
    return _core.kind_bit(_core.BlueKind[kind.upper()])


def _choice_kinds(layout: Layout, actions: str) -> tuple[str, ...]:
    """Kinds of the choices in blocks: those of the layout that the action set has."""
    left_out: tuple[str, ...] = () if actions in ("all", "possible") else ("Monitor",)
    if actions == "lean":
        left_out = ("Monitor", "Analyse", "DecoyVsftpd")
    return tuple(kind for kind in _KINDS if kind in layout.kinds and kind not in left_out)


def _host_blocks(kinds: tuple[str, ...]) -> HostBlocks:
    plain_kinds = tuple(kind for kind in kinds if kind in PLAIN_KINDS)
    return HostBlocks(SHARED_FEATURES, HOST_FEATURES, plain_kinds, kinds[len(plain_kinds) :])


def _block_choices(layout: Layout, blocks: HostBlocks) -> Int64s:
    """Action of each choice; -1 for kinds that the layout lacks."""
    first, slots = action_table(layout).first, np.arange(len(layout.slots))
    plain = [first.get(kind, -1) for kind in blocks.plain_kinds]
    on_slots = [
        first[kind] + slots if kind in first else 0 * slots - 1 for kind in blocks.host_kinds
    ]
    return np.concatenate([plain, *on_slots]).astype(np.int64)


class _Tables:
    """What the scenarios of the games decide, by scenario and slot."""

    fitting: Bytes  # (scenarios, slots), decoys as bits
    misinforms: Bytes  # (scenarios, slots), Misinforms that find a free port
    revealed_by: "np.ndarray[tuple[int, int], np.dtype[np.uint64]]"  # (scenarios, slots), slots
    facts: Float32s  # (scenarios, slots, FACTS)
    sizes: Float32s  # (scenarios, 2), hosts and subnets

    def __init__(self, scenarios: tuple[Scenario, ...], layout: Layout) -> None:
        self._scenarios, self._layout = scenarios, layout
        self._hosts = graph.host_tables(scenarios, layout)
        is_host = self._hosts.slots.mask
        count, slots = is_host.shape
        no_decoys = np.zeros((count, max(len(one.hosts) for one in scenarios)), np.uint16)
        self._possible = mask_tables(scenarios, layout).masks(no_decoys, np.arange(count))
        fits = np.stack([self._on_slots(kind) for kind in _DECOY_KINDS], 2)
        self.fitting = np.packbits(fits, axis=2, bitorder="little")[..., 0]
        self.misinforms = np.zeros((count, slots), np.uint8)
        links = np.zeros((count, slots, slots), np.float32)  # [i, j]: host j reveals host i
        is_third = np.zeros((count, slots), np.float32)
        for number, scenario in enumerate(scenarios):
            slot_of = scenario.slots(layout)
            for host, revealed in graph.links(scenario):
                links[number, slot_of[revealed], slot_of[host]] = 1
            self.misinforms[number, slot_of] = _free_misinforms(scenario)
            thirds = [members[_THIRD] for members in scenario.members if len(members) > _THIRD]
            is_third[number, slot_of[thirds]] = 1
        bits = np.uint64(1) << np.arange(slots, dtype=np.uint64)
        self.revealed_by = (links.astype(np.uint64) * bits).sum(2, dtype=np.uint64)
        self.facts = _host_facts(self._hosts, links, is_third)
        subnets = [len(scenario.subnets) / _MAX_SUBNETS for scenario in scenarios]
        self.sizes = np.stack([is_host.sum(1) / _MAX_HOSTS, subnets], 1).astype(np.float32)

    def possible(self, choices: Int64s, actions: str) -> Bools:
        """Choices that can succeed at some time and belong to the set, (scenarios, choices)."""
        sets = [
            np.isin(choices, action_set(actions, (scenario,), self._layout))
            for scenario in self._scenarios
        ]
        return self._possible[:, choices] & np.array(sets)

    def _on_slots(self, kind: str) -> Bools:
        """Slots where a kind of action can succeed, (scenarios, slots)."""
        first, slots = action_table(self._layout).first, len(self._layout.slots)
        if kind not in first:
            return np.zeros((len(self._scenarios), slots), np.bool_)
        return self._possible[:, first[kind] : first[kind] + slots]


def _host_facts(tables: graph.HostTables, links: Float32s, is_third: Float32s) -> Float32s:
    """Features of a block that never change, (scenarios, slots, FACTS)."""
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


def _free_misinforms(scenario: Scenario) -> list[int]:
    return [
        has_agent * sum(port not in ports for port in MISINFORM_PORTS)
        for ports, has_agent in zip(scenario.ports, scenario.agents, strict=True)
    ]

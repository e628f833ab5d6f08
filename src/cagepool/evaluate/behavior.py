"""What a defender does, measured by the true state: intrusions, fixes, decoys, wasted actions.

An intrusion of a host begins when red gets a session on it and ends when blue removes the last one.
Red's foothold, which blue cannot clear, is left out.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cagepool import _core
from cagepool.policy.defenders import Defender, GameBatch
from cagepool.runs.study_schema import BehaviorCounts
from cagepool.scenarios import Layout, Scenario
from cagepool.scenarios.vocabulary import RANKED_EXPLOITS
from cagepool.sim.masks import action_table
from cagepool.sim.names import EXPLOITS
from cagepool.sim.scenario_tables import pack_scenarios
from cagepool.types import Bools, Int64s

_NO_HOST = -1
# Ports as bits: red prefers a higher one (docs/rules.md, 1.4).
_PORT_OF_EXPLOIT = np.array([1 << [*RANKED_EXPLOITS].index(name) for name in EXPLOITS])
_DECOY_PORTS = np.array([opened for opened, _ in _core.ports_of_decoys()])
_PORTS_OF_DECOYS = np.array(
    [
        np.bitwise_or.reduce(_DECOY_PORTS[(decoys >> np.arange(len(_DECOY_PORTS)) & 1) == 1])
        for decoys in range(1 << len(_DECOY_PORTS))
    ]
)


class _Tables:
    """What the counts need of the scenarios, by scenario and host or action."""

    def __init__(self, scenarios: Sequence[Scenario], layout: Layout) -> None:
        table = action_table(layout)
        most = max(len(scenario.hosts) for scenario in scenarios)
        self.kinds = np.array(
            ["Decoy" if name.startswith("Decoy") else name for name in layout.kinds]
        )[table.kinds]
        self.host_counts = np.array([len(scenario.hosts) for scenario in scenarios])
        self.foothold = np.array([scenario.entry for scenario in scenarios])
        self.action_host = np.full((len(scenarios), len(table)), _NO_HOST)
        self.is_open = np.zeros((len(scenarios), most), np.bool_)
        self.is_gated = np.zeros((len(scenarios), most), np.bool_)
        self.is_gate = np.zeros((len(scenarios), most), np.bool_)
        for number, scenario in enumerate(scenarios):
            host_of_slot = np.full(len(layout.slots) + 1, _NO_HOST)  # the last: no slot
            host_of_slot[scenario.slots(layout)] = np.arange(len(scenario.hosts))
            self.action_host[number] = host_of_slot[table.slots]
            modes = np.array([scenario.modes[net] for net in scenario.subnet_of])
            self.is_open[number, : len(modes)] = modes == "open"
            self.is_gated[number, : len(modes)] = modes == "gated"
            self.is_gate[number, [*scenario.gate]] = True
        services = pack_scenarios(scenarios, layout)["services"].reshape(len(scenarios), -1, 8)
        self.genuine_ports = services[:, :most, 1] | services[:, :most, 2]  # user, privileged


class BehaviorRecorder(Defender):
    """A defender that plays as another one and counts what that one does.

    Call `counts` after the last game.
    """

    def __init__(self, defender: Defender) -> None:
        """Play as this defender."""
        self._defender = defender
        self._totals: dict[str, int] = dict.fromkeys(BehaviorCounts.__struct_fields__, 0)
        self._batch: GameBatch | None = None

    def begin(self, batch: int | GameBatch) -> None:
        """Begin with new games."""
        assert not isinstance(batch, int)
        self._finish_games()
        self._batch = batch
        self._tables = _Tables(batch.scenarios, batch.layout)
        shape = batch.true_state["access"].shape
        self._step = 0
        self._started: Int64s = np.full(shape, -1, np.int64)  # step of the intrusion; -1: none
        self._was_privileged: Bools = np.zeros(shape, np.bool_)
        self._was_removable: Bools = np.zeros(shape, np.bool_)
        self._defender.begin(batch)
        self._before = batch.true_state.copy()

    def act(self, observations: ArrayLike) -> Int64s:
        """Count the last step, then choose the actions of the next one."""
        assert self._batch is not None
        if self._step:
            self._count_step(self._batch)
        self._before = self._batch.true_state.copy()
        self._step += 1
        return self._defender.act(observations)

    def counts(self) -> BehaviorCounts:
        """Counts over all games so far."""
        self._finish_games()
        return BehaviorCounts(**self._totals)

    def _finish_games(self) -> None:
        """Count the last step of the games; intrusions that are left were not fixed."""
        if self._batch is None:
            return
        self._count_step(self._batch)
        self._end_intrusions(self._started >= 0, None)
        self._batch = None

    def _add(self, **counts: Any) -> None:
        for name, count in counts.items():
            self._totals[name] += int(count)

    def _count_step(self, batch: GameBatch) -> None:
        before, after, tables = self._before, batch.true_state, self._tables
        actions, ids, games = batch.moves["blue_action"], batch.scenario_ids, np.arange(batch.games)
        kind, host = tables.kinds[actions], tables.action_host[ids, actions]
        is_other = (host != _NO_HOST) & (host != tables.foothold[ids])
        access = (before["access"] > 0)[games, host] & is_other
        removable = (before["user_seen"] > 0)[games, host] & is_other
        only_removable = removable & (
            (before["privileged"] + before["user_unseen"])[games, host] == 0
        )
        restores, removes = kind == "Restore", kind == "Remove"
        self._fix(games, host, restores & access, "restore")
        self._fix(games, host, removes & only_removable, "remove")
        held = self._held(after)
        self._track(after, held)
        others = np.sum(tables.host_counts[ids] - 1)  # hosts other than the foothold
        decoys, analyses = kind == "Decoy", kind == "Analyse"
        found = (before["malware"] != 0)[games, host] & (host != _NO_HOST)
        self._add(
            games=batch.games if self._step == 1 else 0,
            steps=batch.games,
            host_steps=others,
            clean_host_steps=others - np.count_nonzero(held),
            restores=np.count_nonzero(restores),
            useful_restores=np.count_nonzero(restores & access),
            removes=np.count_nonzero(removes),
            useful_removes=np.count_nonzero(removes & removable),
            decoys=np.count_nonzero(decoys),
            decoy_hits=np.count_nonzero(_decoy_hits(batch, self._tables)),
            exploits=np.count_nonzero(batch.moves["red_kind"] == _core.RedKind.EXPLOIT),
            idle_steps=np.count_nonzero(np.isin(kind, ("Sleep", "Monitor"))),
            actions_without_effect=np.count_nonzero(
                (restores & ~access)
                | (removes & ~removable)
                | (decoys & (batch.moves["blue_success"] != 1))
                | (analyses & ~found)
            ),
        )

    def _fix(self, games: Int64s, host: Int64s, fixes: Bools, by: str) -> None:
        ended = np.zeros_like(self._was_privileged)
        ended[games[fixes], host[fixes]] = True
        self._end_intrusions(ended & (self._started >= 0), by)

    def _held(self, after: Any) -> Bools:
        """Hosts on which red has a session, without its foothold."""
        assert self._batch
        held: Bools = after["access"] > 0
        held[np.arange(len(held)), self._tables.foothold[self._batch.scenario_ids]] = False
        return held

    def _track(self, after: Any, held: Bools) -> None:
        """Begin intrusions, and note what the sessions of those that go on allow."""
        self._started[held & (self._started < 0)] = self._step
        self._was_privileged |= held & (after["privileged"] > 0)
        self._was_removable |= held & (after["user_seen"] > 0)

    def _end_intrusions(self, ended: Bools, by: str | None) -> None:
        """Count intrusions that end in this step; `by` none: with their games."""
        privileged, removable = ended & self._was_privileged, ended & self._was_removable
        count = np.count_nonzero(ended)
        self._add(
            intrusions=count,
            privileged_intrusions=np.count_nonzero(privileged),
            removable_intrusions=np.count_nonzero(removable),
            fixed_intrusions=count if by else 0,
            steps_to_fix=(self._step - self._started[ended]).sum() if by else 0,
            restored_intrusions=np.count_nonzero(privileged) if by == "restore" else 0,
            removed_intrusions=np.count_nonzero(removable) if by == "remove" else 0,
        )
        self._started[ended] = -1
        self._was_privileged[ended] = False
        self._was_removable[ended] = False


def _decoy_hits(batch: GameBatch, tables: _Tables) -> Bools:
    """Games whose last step was an exploit of a decoy."""
    moves, state, ids = batch.moves, batch.true_state, batch.scenario_ids
    games = np.arange(batch.games)
    tried = (moves["red_kind"] == _core.RedKind.EXPLOIT) & (moves["exploit"] >= 0)
    target = np.where(tried, moves["red_target"], 0)
    failed = tried & (moves["red_success"] == 0)
    port = _PORT_OF_EXPLOIT[moves["exploit"]]
    placed = _PORTS_OF_DECOYS[state["decoys"][games, target] & 255]
    opened = placed & ~tables.genuine_ports[ids, target]
    passes_gate = ((state["access"] > 0) & tables.is_gate[ids]).any(axis=1)
    reachable = tables.is_open[ids, target] | (tables.is_gated[ids, target] & passes_gate)
    hits: Bools = failed & ((opened & port) != 0) & reachable
    return hits

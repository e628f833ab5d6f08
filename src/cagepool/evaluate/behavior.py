"""What a defender does, measured by the true state: intrusions, fixes, decoys, wasted actions.

An intrusion of a host begins when red gets a session on it and ends when blue removes the last one.
User0, red's foothold, which blue cannot clear, is left out.
"""

from typing import Any

import numpy as np

from cagepool import _core
from cagepool.evaluate.defenders import Defender, GameBatch
from cagepool.runs.study_schema import BehaviorCounts
from cagepool.sim.names import EXPLOITS, HOSTS, host_index
from cagepool.types import Bools, Int64s

_USER0 = host_index("User0")
_OPERATIONAL = [index for index, host in enumerate(HOSTS) if host.startswith("Op_")]
_ENTERPRISE = [index for index, host in enumerate(HOSTS) if host.startswith("Enterprise")]
_KIND, _HOST, _, _ = (
    np.array(column)
    for column in zip(*map(_core.blue_action, range(_core.ACTION_COUNT)), strict=True)
)
# Ports as bits: red prefers a higher one (docs/rules.md, 1.4).
_BY_RANK = (
    *("SSHBruteForce", "BlueKeep", "EternalBlue", "HTTPRFI"),
    *("HTTPSRFI", "SQLInjection", "HarakaRCE", "FTPDirectoryTraversal"),
)
_PORT_OF_EXPLOIT = np.array([1 << _BY_RANK.index(name) for name in EXPLOITS])
_DECOY_PORTS = [opened for opened, _ in _core.ports_of_decoys()]
_PORTS_OF_DECOYS = np.array(
    [
        np.bitwise_or.reduce([port for bit, port in enumerate(_DECOY_PORTS) if decoys >> bit & 1])
        if decoys
        else 0
        for decoys in range(256)
    ]
)
_GENUINE_PORTS = np.array([user | root for _, user, root in _core.host_services()])


class BehaviorRecorder:
    """A defender that plays as another one and counts what that one does.

    Call `counts` after the last game.
    """

    def __init__(self, defender: Defender) -> None:
        """Play as this defender."""
        self._defender = defender
        self._totals: dict[str, int] = dict.fromkeys(BehaviorCounts.__struct_fields__, 0)
        self._batch: GameBatch | None = None

    def begin(self, batch: GameBatch) -> None:
        """Begin with new games."""
        self._finish_games()
        self._batch = batch
        shape = batch.games, _core.HOST_COUNT
        self._step = 0
        self._started: Int64s = np.full(shape, -1, np.int64)  # step of the intrusion; -1: none
        self._was_privileged: Bools = np.zeros(shape, np.bool_)
        self._was_removable: Bools = np.zeros(shape, np.bool_)
        self._defender.begin(batch)
        self._before = batch.true_state.copy()

    def act(self, batch: GameBatch) -> Int64s:
        """Count the last step, then choose the actions of the next one."""
        if self._step:
            self._count_step(batch)
        self._before = batch.true_state.copy()
        self._step += 1
        return self._defender.act(batch)

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
        before, after = self._before, batch.true_state
        actions = batch.moves["blue_action"]
        kind, host = _KIND[actions], _HOST[actions]
        games = np.arange(batch.games)
        access = (before["access"] > 0)[games, host] & (host != _USER0)
        removable = (before["user_seen"] > 0)[games, host] & (host != _USER0)
        only_removable = removable & (
            (before["privileged"] + before["user_unseen"])[games, host] == 0
        )
        restores, removes = kind == _core.BlueKind.RESTORE, kind == _core.BlueKind.REMOVE
        self._fix(games, host, restores & access, "restore")
        self._fix(games, host, removes & only_removable, "remove")
        self._track(after)
        held = after["access"] > 0
        held[:, _USER0] = False
        decoys = kind == _core.BlueKind.DECOY
        analyses = kind == _core.BlueKind.ANALYSE
        found = (before["malware"] != 0)[games, host]
        self._add(
            games=batch.games if self._step == 1 else 0,
            steps=batch.games,
            host_steps=batch.games * (_core.HOST_COUNT - 1),
            clean_host_steps=batch.games * (_core.HOST_COUNT - 1) - np.count_nonzero(held),
            restores=np.count_nonzero(restores),
            useful_restores=np.count_nonzero(restores & access),
            removes=np.count_nonzero(removes),
            useful_removes=np.count_nonzero(removes & removable),
            decoys=np.count_nonzero(decoys),
            decoy_hits=np.count_nonzero(_decoy_hits(batch)),
            exploits=np.count_nonzero(batch.moves["red_kind"] == _core.RedKind.EXPLOIT),
            idle_steps=np.count_nonzero(
                (kind == _core.BlueKind.SLEEP) | (kind == _core.BlueKind.MONITOR)
            ),
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

    def _track(self, after: Any) -> None:
        """Begin intrusions, and note what the sessions of those that go on allow."""
        held = after["access"] > 0
        held[:, _USER0] = False
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


def _decoy_hits(batch: GameBatch) -> Bools:
    """Games whose last step was an exploit of a decoy."""
    moves, state = batch.moves, batch.true_state
    games, target = np.arange(batch.games), moves["red_target"]
    tried = (moves["red_kind"] == _core.RedKind.EXPLOIT) & (moves["exploit"] >= 0)
    failed = tried & (moves["red_success"] == 0)
    port = _PORT_OF_EXPLOIT[moves["exploit"]]
    opened = _PORTS_OF_DECOYS[state["decoys"][games, target] & 255] & ~_GENUINE_PORTS[target]
    reachable = ~np.isin(target, _OPERATIONAL) | (state["access"][:, _ENTERPRISE] > 0).any(axis=1)
    hits: Bools = failed & ((opened & port) != 0) & reachable
    return hits

"""States of the relaxed game in real games of the core, and play by its optimal policy."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cagepool import _core
from cagepool.policy.defenders import Defender, GameBatch
from cagepool.sim import Batch, BatchConfig, dtypes
from cagepool.sim.names import HOSTS, action_index
from cagepool.types import Float64s, Int64s, Records
from research.bounds.host_model import NEVER_SCANNED, Condition
from research.bounds.model import (
    COLUMNS,
    EXPLOITS,
    OP_SERVER0,
    ROLES,
    BlueMove,
    Column,
    Model,
    Service,
    Session,
)
from research.bounds.solve import LENGTHS, Graph, after_values, move_values
from research.bounds.start import DRAW_STEPS, Start

SNAPSHOT_HEADER = 16  # bytes before the structs (cpp/core/snapshot.cpp)
SNAPSHOT = np.dtype(
    [("config", dtypes.GAME_CONFIG), ("game", dtypes.GAME), ("true_state", dtypes.CAGE2_TRUE_STATE)]
)
SLEEP = action_index("Sleep")
NO_DRAW = 255  # `user_pick` before the draw


def read_games(batch: Batch) -> Records:
    """States of all games, fields `game` and `true_state`, from snapshots."""
    end = SNAPSHOT_HEADER + SNAPSHOT.itemsize
    rows = [blob[SNAPSHOT_HEADER:end] for blob in batch.save(np.arange(batch.games))]
    return np.frombuffer(b"".join(rows), SNAPSHOT)


def start_games(games: int, edition: str, seed: int) -> Batch:
    """Start games against B_line."""
    config = BatchConfig(red="B_lineAgent", edition=edition, autoreset="disabled")
    batch = Batch(games, config)
    batch.reset(np.arange(seed, seed + games, dtype=np.uint64))
    return batch


class StateReader:
    """Maps games of the core, after red's draw of the user host, to states of a model."""

    def __init__(self, model: Model) -> None:
        """Read the tables of the model."""
        self.model = model
        self._after = np.array([[fail, win] for _, fail, win in model.plan])

    def states(self, rows: Records, moves: Records) -> Int64s:
        """States, (games, COLUMNS), from snapshots and the moves of the last step."""
        game, hosts = rows["game"], self.model.hosts
        states = np.zeros((len(rows), COLUMNS), np.int64)
        states[:, Column.POSITION], states[:, Column.REACHED_12] = self._position(game)
        for role in ROLES:
            states[:, Column.PRIVILEGED + role] = game["privileged"] >> hosts[role] & 1
            if role != OP_SERVER0:
                states[:, Column.CONDITION + role] = [
                    self.model.models[role].number_of[self.condition(row, role)] for row in rows
                ]
        states[:, Column.SERVICE] = np.where(
            game["ot_pid_known"],
            np.where(game["outage_tenths"] > 0, Service.STOPPED, Service.RUNNING),
            Service.PROTECTED,
        )
        for position, role in EXPLOITS.items():
            at = states[:, Column.POSITION] == position + 1
            self._write_session(states, rows, moves, np.flatnonzero(at), role)
        return states

    def condition(self, row: np.void, role: int) -> Condition:
        """Condition of a host."""
        host = self.model.hosts[role]
        return _condition(
            host,
            int(row["true_state"]["decoys"][host]) & 255,
            int(row["game"]["red_ports"][host]),
            int(row["game"]["mail_immune"]),
        )

    def _position(self, game: Records) -> tuple[Int64s, Int64s]:
        """Position that B_line plays next, and whether it has played position 12 then."""
        position = self._after[game["position"], (game["last_success"] == 1).astype(int)]
        first = (position == 12) & ~game["reached_12"]
        position = np.where(first & game["last_scan_empty"], 1, position)
        return position, game["reached_12"] | (position == 12)

    def _write_session(
        self, states: Int64s, rows: Records, moves: Records, at: Int64s, role: int
    ) -> None:
        """Write the session on the host that red escalates next."""
        host = self.model.hosts[role]
        found = rows["true_state"][at]
        removable, unremovable = found["user_seen"][:, host], found["user_unseen"][:, host]
        privileged = states[at, Column.PRIVILEGED + role] == 1
        session = np.select(
            [privileged, removable > 0, unremovable > 0],
            [Session.NONE, Session.REMOVABLE, Session.UNREMOVABLE],
            Session.NONE,
        )
        assert not (~privileged & (removable + unremovable > 1)).any()
        if self.model.config.information == "observation":
            exploited = moves["red_kind"][at] == _core.RedKind.EXPLOIT
            visible = exploited & (moves["red_success"][at] == 1) & (moves["detected"][at] != 0)
            # The invariant above: a host with two sessions had a privileged one before.
            only = removable + unremovable + found["privileged"][:, host] == 1
            session = np.where(visible & only, Session.UNKNOWN, session)
            states[at[visible & only], Column.PRIVILEGED + role] = 0
        states[at, Column.SESSION] = session


@lru_cache(maxsize=100_000)
def _condition(host: int, decoys: int, red_ports: int, mail_immune: int) -> Condition:
    opened = 0
    for decoy, (port, _) in enumerate(_core.ports_of_decoys()):
        opened |= port if decoys >> decoy & 1 else 0
    immune = bool(mail_immune << HOSTS.index("User3") & 1 << host)
    return Condition(opened, red_ports or NEVER_SCANNED, immune)


@dataclass(frozen=True)
class Solution:
    """Optimal policy of the relaxed game for an objective."""

    graphs: Sequence[Graph]  # one per user host
    values: Sequence[Sequence[Float64s]]  # by user host and number of steps played
    start: Start
    weights: Sequence[float]


class OptimalDefender(Defender):
    """Plays the optimal policy of the relaxed game, from the true state of native games.

    With information `observation` it does not use what the policy may not know.
    """

    def __init__(self, solution: Solution) -> None:
        """Prepare to play."""
        self._solution = solution
        self._readers = [StateReader(graph.model) for graph in solution.graphs]
        self._step = 0

    def begin(self, batch: int | GameBatch) -> None:
        """Start an episode in the games of a `sim.Batch`."""
        assert isinstance(batch, Batch)
        self._step, self._batch = 0, batch

    def act(self, _observations: ArrayLike) -> Int64s:
        """Choose one action per game."""
        step, solution, batch = self._step, self._solution, self._batch
        self._step += 1
        if step < DRAW_STEPS:
            return np.full(batch.games, solution.start.actions[step])
        rows = read_games(batch)
        actions = np.full(batch.games, SLEEP)
        for user, (graph, values) in enumerate(zip(solution.graphs, solution.values, strict=True)):
            games = np.flatnonzero(rows["game"]["user_pick"] == user)
            if not len(games):
                continue
            states = self._readers[user].states(rows[games], batch.moves[games])
            weight = solution.weights[step]
            after = after_values(graph, values[step + 1], weight)
            best = move_values(graph, after, weight).argmax(axis=0)[graph.index(states)]
            for game, state, move in zip(games, states, best, strict=True):
                chosen = graph.model.moves[move]
                actions[game] = self._action(self._readers[user], rows[game], state, chosen)
        return actions

    def _action(self, reader: StateReader, row: np.void, state: Int64s, move: BlueMove) -> int:
        """One of blue's 145 actions."""
        model = reader.model
        if move.verb == "decoy":
            host_model = model.models[move.role]
            number = host_model.decoyed[state[Column.CONDITION + move.role], move.choice]
            action = host_model.decoy_action(reader.condition(row, move.role), number)
            return SLEEP if action is None else action
        if move.verb == "Remove":
            role = EXPLOITS.get(int(state[Column.POSITION]) - 1)
            return SLEEP if role is None else action_index(f"Remove {HOSTS[model.hosts[role]]}")
        if move.verb == "Restore":
            return action_index(f"Restore {HOSTS[model.hosts[move.role]]}")
        return SLEEP


class Scores(NamedTuple):
    """Totals of games."""

    totals: Float64s  # (games, LENGTHS)
    users: Int64s  # (games,), 0 to 3 for User1 to User4


def play_games(defender: Defender, games: int, edition: str, seed: int) -> Scores:
    """Play games of 100 steps against B_line and read the totals after each length."""
    batch = start_games(games, edition, seed)
    defender.begin(batch)
    totals, found = np.zeros(games), []
    for step in range(1, max(LENGTHS) + 1):
        batch.step(defender.act(batch.observations))
        totals += batch.rewards
        if step in LENGTHS:
            found.append(totals.copy())
    return Scores(np.stack(found, axis=1), read_games(batch)["game"]["user_pick"].astype(np.int64))

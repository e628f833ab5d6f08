"""Relaxed game of blue against B_lineAgent for a known user host, on arrays of states.

A state has what B_line's future and the reward depend on, at the moment of blue's decision
(docs/bounds.md). Blue moves first (`blue_move`), then red (`red_moves`); both take many states.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from cagepool import _core
from cagepool.types import Bools, Float64s, Int64s
from research.bounds.host_model import ExploitOutcome, HostModel

Outcome: TypeAlias = dict[str, Float64s]
"""Probabilities of `ExploitOutcome`, by state."""
Information = Literal["full", "observation"]
OpDecoys = Literal["free", "none"]
USER, ENTRY, ENTERPRISE2, OP_SERVER0 = range(4)
"""Roles of the four hosts that B_line attacks."""
ROLES = range(4)
EXPLOITS = {2: USER, 5: ENTRY, 9: ENTERPRISE2, 12: OP_SERVER0}
"""Positions of B_line's plan that exploit a host; the next position escalates there."""


class Column(IntEnum):
    """Columns of a state."""

    POSITION = 0
    """Position of the plan that red plays next."""
    REACHED_12 = 1
    """Red has played position 12."""
    SESSION = 2
    """Session on the host that red escalates next."""
    PRIVILEGED = 3
    """Four columns by role: red has a privileged session."""
    SERVICE = 7
    """OTService."""
    CONDITION = 8
    """Three columns by role, all but Op_Server0: number of the condition in the host's model."""


COLUMNS = 11


class Session(IntEnum):
    """Session on a host without a privileged session, as far as blue knows it."""

    NONE = 0
    REMOVABLE = 1
    UNREMOVABLE = 2
    UNKNOWN = 3
    """Blue saw the exploit but not what it yielded; information `observation` only."""


class Service(IntEnum):
    """OTService on Op_Server0."""

    RUNNING = 0
    STOPPED = 1
    PROTECTED = 2
    """Op_Server0 was restored: Impact has no effect any more (Q2)."""


class BlueMove(NamedTuple):
    """A kind of blue's action."""

    verb: Literal["wait", "Remove", "Restore", "decoy"]
    role: int = 0
    choice: int = 0
    """Column of `HostModel.decoyed`."""


class RedOutcomes(NamedTuple):
    """What can follow from red's action, per state."""

    states: Int64s  # (outcomes, states, COLUMNS)
    probabilities: Float64s  # (outcomes, states)
    rewards: Float64s  # (states,), expected, without the cost of blue's action


@dataclass(frozen=True)
class ModelConfig:
    """Which relaxed game."""

    user: int
    """User host that B_line draws: 0 to 3 for User1 to User4."""
    edition: str = "2.1"
    information: Information = "full"
    op_decoys: OpDecoys = "free"
    """`free`: blue picks, at each exploit of Op_Server0, which decoys red has seen there, at no
    cost; `none`: blue places no decoys there."""


class Model:
    """Transitions and rewards of the relaxed game."""

    def __init__(self, config: ModelConfig) -> None:
        """Build the models of the hosts."""
        self.config = config
        self.plan = [(kind, fail, win) for kind, fail, win, _ in _core.b_line_plan()]
        targets = [row[3][config.user] for row in _core.b_line_plan()]
        self.hosts = [targets[position] for position in EXPLOITS]
        self.host_losses = np.array(_core.host_loss_tenths())[self.hosts] / 10
        self.models = [HostModel(host, config.edition) for host in self.hosts]
        self.radix = np.array(
            [len(self.plan), 2, len(Session), 2, 2, 2, 2, len(Service)]
            + [model.size for model in self.models[:OP_SERVER0]]
        )
        self.moves = [BlueMove("wait"), BlueMove("Remove")]
        self.moves += [BlueMove("Restore", role) for role in ROLES]
        self.moves += [
            BlueMove("decoy", role, choice)
            for role in ROLES[:OP_SERVER0]
            for choice in range(self.models[role].decoyed.shape[1])
        ]

    @property
    def start(self) -> Int64s:
        """State at the start of an episode, (1, COLUMNS)."""
        state = np.zeros((1, COLUMNS), np.int64)
        for role in ROLES[:OP_SERVER0]:
            state[:, Column.CONDITION + role] = self.models[role].start
        return state

    def encode(self, states: Int64s) -> Int64s:
        """Number of each state."""
        codes: Int64s = np.ravel_multi_index(tuple(states.T), tuple(self.radix)).astype(np.int64)
        return codes

    def decode(self, codes: Int64s) -> Int64s:
        """Inverse of `encode`."""
        return np.stack(np.unravel_index(codes, tuple(self.radix)), axis=1).astype(np.int64)

    def blue_move(self, states: Int64s, move: BlueMove) -> Int64s:
        """States after one of blue's moves; a Remove of an UNKNOWN session works."""
        after = states.copy()
        if move.verb == "Remove":
            session = after[:, Column.SESSION]
            session[(session == Session.REMOVABLE) | (session == Session.UNKNOWN)] = Session.NONE
        elif move.verb == "Restore":
            self._restore(after, move.role)
        elif move.verb == "decoy":
            condition = after[:, Column.CONDITION + move.role]
            condition[:] = self.models[move.role].decoyed[condition, move.choice]
        if move.verb != "Remove":  # what red got can no longer be removed
            session = after[:, Column.SESSION]
            session[session != Session.NONE] = Session.UNREMOVABLE
        return after

    def remove_probability(self, states: Int64s) -> Float64s:
        """Probability that a Remove works in each state with an UNKNOWN session, else 1."""
        chance = np.ones(len(states))
        unknown = states[:, Column.SESSION] == Session.UNKNOWN
        for position, role in EXPLOITS.items():
            rows = np.flatnonzero(unknown & (states[:, Column.POSITION] == position + 1))
            if len(rows):
                outcome = self._outcome(role, states[rows])
                chance[rows] = outcome["user_detected"] / _visible(outcome)
        return chance

    def blue_cost(self, move: BlueMove) -> float:
        """Cost of a move."""
        return _core.RESTORE_TENTHS / 10 if move.verb == "Restore" else 0.0

    def red_moves(self, states: Int64s, op_success: float | Float64s = 1.0) -> RedOutcomes:
        """What can follow from red's action in states after blue's move.

        Args:
            states: States, (n, COLUMNS).
            op_success: Probability, in all states or per state, that an exploit of Op_Server0
                works if red can reach it; 1: without decoys.
        """
        n = len(states)
        result = RedOutcomes(np.repeat(states[None], 4, axis=0), np.zeros((4, n)), np.zeros(n))
        result.probabilities[0] = 1
        op_success = np.broadcast_to(op_success, n)
        for position, (kind, *_) in enumerate(self.plan):
            rows = np.flatnonzero(states[:, Column.POSITION] == position)
            if not len(rows):
                continue
            if kind == _core.RedKind.EXPLOIT:
                self._exploit(result, rows, position, op_success[rows])
            else:
                self._act(result, rows, position, kind)
        result.rewards[:] -= (result.probabilities * self.losses(result.states)).sum(axis=0)
        return result

    def op_success_choices(self) -> tuple[float, ...]:
        """Success probabilities of an exploit of Op_Server0 among which blue may choose."""
        if self.config.op_decoys == "none":
            return (1.0,)
        success = self.models[OP_SERVER0].outcomes.sum(axis=1)
        return (float(success.max()), float(success[success > 0].min()))

    def _restore(self, states: Int64s, role: int) -> None:
        states[:, Column.PRIVILEGED + role] = 0
        if role == OP_SERVER0:
            states[:, Column.SERVICE] = Service.PROTECTED
        else:
            condition = states[:, Column.CONDITION + role]
            condition[:] = self.models[role].restored[condition]
        escalation = next(p for p, exploited in EXPLOITS.items() if exploited == role) + 1
        states[states[:, Column.POSITION] == escalation, Column.SESSION] = Session.NONE

    def _outcome(self, role: int, states: Int64s) -> Outcome:
        """Probabilities of what an exploit yields, by state."""
        model = self.models[role]
        if role == OP_SERVER0:  # no decoys
            numbers = np.full(len(states), model.scanned[model.start])
        else:
            numbers = states[:, Column.CONDITION + role]
        return dict(zip(ExploitOutcome._fields, model.outcomes[numbers].T, strict=True))

    def _exploit(
        self, result: RedOutcomes, rows: Int64s, position: int, op_success: Float64s
    ) -> None:
        """Write four outcomes: failure, privileged, and the two kinds of session."""
        role = EXPLOITS[position]
        states = result.states[0, rows]
        outcome = self._outcome(role, states)
        if role == OP_SERVER0:
            works = _gate_open(states) * op_success
            outcome = {name: works * share for name, share in outcome.items()}
        had = states[:, Column.PRIVILEGED + role] == 1
        if self.config.information == "full":
            privileged = outcome["privileged_detected"] + outcome["privileged_undetected"]
            first, kind = outcome["user_detected"], Session.REMOVABLE
            second = outcome["user_undetected"] + outcome["user_ssh"]
        else:
            privileged = outcome["privileged_undetected"]
            first, kind = _visible(outcome), Session.UNKNOWN
            second = outcome["user_undetected"]
            loss = self.host_losses[role] * outcome["privileged_detected"]
            result.rewards[rows] -= np.where(had, 0, loss)
        success = privileged + first + second
        _, fail, win = self.plan[position]
        result.probabilities[:, rows] = [1 - success, privileged, first, second]
        result.states[0, rows, Column.POSITION] = fail
        result.states[1:, rows, Column.POSITION] = win
        result.states[1, rows, Column.PRIVILEGED + role] = 1
        for index, session in ((2, kind), (3, Session.UNREMOVABLE)):
            # Beside a privileged session another session changes nothing.
            result.states[index, rows, Column.SESSION] = np.where(had, Session.NONE, session)

    def _act(self, result: RedOutcomes, rows: Int64s, position: int, kind: _core.RedKind) -> None:
        """Write the single outcome of an action that is not an exploit."""
        states = result.states[0, rows]
        success = np.ones(len(rows), bool)
        if kind == _core.RedKind.SCAN:
            self._scan(states, position)
        elif kind == _core.RedKind.ESCALATE:
            success = self._escalate(states, EXPLOITS[position - 1])
        elif kind == _core.RedKind.IMPACT:
            success = states[:, Column.PRIVILEGED + OP_SERVER0] == 1
            stopped = success & (states[:, Column.SERVICE] == Service.RUNNING)
            states[stopped, Column.SERVICE] = Service.STOPPED
        _, fail, win = self.plan[position]
        target = np.where(success, win, fail)
        if win == 12:
            empty = success & ~_gate_open(states) & (states[:, Column.REACHED_12] == 0)
            target[empty] = 1
            states[success & ~empty, Column.REACHED_12] = 1
        states[:, Column.POSITION] = target
        result.states[0, rows] = states

    def _scan(self, states: Int64s, position: int) -> None:
        role = EXPLOITS[position + 1]
        if role != OP_SERVER0:
            condition = states[:, Column.CONDITION + role]
            condition[:] = self.models[role].scanned[condition]

    def _escalate(self, states: Int64s, role: int) -> Bools:
        privileged = states[:, Column.PRIVILEGED + role]
        success: Bools = (privileged == 1) | (states[:, Column.SESSION] != Session.NONE)
        privileged[success] = 1
        states[:, Column.SESSION] = Session.NONE
        return success

    def losses(self, states: Int64s) -> Float64s:
        """Loss of a step that ends in these states, (..., COLUMNS) to (...)."""
        privileged = states[..., Column.PRIVILEGED : Column.PRIVILEGED + len(ROLES)]
        stopped = states[..., Column.SERVICE] == Service.STOPPED
        loss: Float64s = privileged @ self.host_losses + stopped * (_core.OUTAGE_TENTHS / 10)
        return loss


def _gate_open(states: Int64s) -> Bools:
    """Whether red can reach Op_Server0: it has a session on an Enterprise host (rules 1.2)."""
    found: Bools = (
        states[:, Column.PRIVILEGED + ENTRY] + states[:, Column.PRIVILEGED + ENTERPRISE2]
    ) > 0
    return found


def _visible(outcome: Outcome) -> Float64s:
    """Probability that red gets the host and blue sees activity Exploit there."""
    return outcome["privileged_detected"] + outcome["user_detected"] + outcome["user_ssh"]

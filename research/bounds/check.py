"""Compares the relaxed game with real games of the core, transition by transition."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from cagepool import _core
from cagepool.sim import Batch
from cagepool.sim.names import HOSTS, action_index
from cagepool.types import Bools, Float64s, Int64s, Records
from research.bounds.core_games import NO_DRAW, StateReader, read_games, start_games
from research.bounds.host_model import exploit_outcome
from research.bounds.model import (
    EXPLOITS,
    OP_SERVER0,
    BlueMove,
    Column,
    Information,
    Model,
    ModelConfig,
    Session,
)

USER_HOSTS = 4
MIN_VARIANCE = 20.0  # of a count whose z-score is taken: enough for the normal law


@dataclass
class Frequencies:
    """Observed and expected counts of outcomes, by what they depend on."""

    excess: dict[tuple[int, ...], float] = field(default_factory=lambda: defaultdict(float))
    variance: dict[tuple[int, ...], float] = field(default_factory=lambda: defaultdict(float))

    def add(self, key: tuple[int, ...], observed: float, probability: float) -> None:
        """Add one transition."""
        self.excess[key] += observed - probability
        self.variance[key] += probability * (1 - probability)

    def z_scores(self) -> list[float]:
        """Standardized excess of the outcomes with enough observations."""
        return [
            float(self.excess[key] / np.sqrt(variance))
            for key, variance in self.variance.items()
            if variance >= MIN_VARIANCE
        ]


@dataclass
class TransitionCheck:
    """Result of a comparison."""

    transitions: int = 0
    random_transitions: int = 0
    """Transitions with more than one possible outcome."""
    frequencies: Frequencies = field(default_factory=Frequencies)

    def as_dict(self) -> dict[str, float]:
        """Figures for the result file."""
        scores = np.abs(self.frequencies.z_scores())
        return {
            "transitions": self.transitions,
            "random_transitions": self.random_transitions,
            "outcome_classes": len(scores),
            "largest_z": round(float(scores.max(initial=0)), 2),
            "mean_z_squared": round(float((scores**2).sum() / max(1, len(scores))), 3),
        }


ChooseActions = Callable[[Generator, Batch], Int64s]


class Step(NamedTuple):
    """One step of games: snapshots and last moves before and after, actions, rewards."""

    rows: Records
    moves: Records
    next_rows: Records
    next_moves: Records
    actions: Int64s
    rewards: Float64s

    def select(self, games: Int64s) -> "Step":
        """The step of some of the games."""
        return Step(
            self.rows[games],
            self.moves[games],
            self.next_rows[games],
            self.next_moves[games],
            self.actions[games],
            self.rewards[games],
        )


def random_actions(rng: Generator, batch: Batch) -> Int64s:
    """Sleep, an action on a host that B_line attacks, or Remove or Restore where red is."""
    fixes = [_fixes_of(row) for row in batch.true_state["access"] > 0]
    options = [
        np.zeros(batch.games, np.int64),
        rng.choice(_ATTACKED, batch.games),
        np.array([rng.choice(found) for found in fixes]),
    ]
    return np.choose(rng.choice(3, batch.games, p=[0.3, 0.35, 0.35]), options)


_HOSTS = {
    host for kind, *_, hosts in _core.b_line_plan() for host in hosts if kind != _core.RedKind.SWEEP
}
_ATTACKED = np.array(
    [a for a in range(2, _core.ACTION_COUNT) if _core.blue_action(a)[1] in _HOSTS], np.int64
)


def _fixes_of(has_red: Bools) -> list[int]:
    """Remove and Restore on the hosts that red has besides User0; Sleep if there are none."""
    names = [HOSTS[host] for host in np.flatnonzero(has_red) if host in _HOSTS]
    return [action_index(f"{verb} {name}") for name in names for verb in ("Remove", "Restore")] or [
        0
    ]


def check_transitions(
    edition: str,
    information: Information,
    *,
    games: int,
    seed: int,
    choose: ChooseActions = random_actions,
) -> TransitionCheck:
    """Play games of 100 steps and look up every transition in the relaxed game.

    Raises:
        AssertionError: a transition or a reward of the core is not one of the relaxed game.
    """
    models = [Model(ModelConfig(user, edition, information)) for user in range(USER_HOSTS)]
    readers = [StateReader(model) for model in models]
    batch, rng = start_games(games, edition, seed), np.random.default_rng(seed)
    check = TransitionCheck()
    rows, moves = read_games(batch), batch.moves.copy()
    for _ in range(100):
        actions = choose(rng, batch)
        batch.step(actions)
        next_rows, next_moves = read_games(batch), batch.moves.copy()
        step = Step(rows, moves, next_rows, next_moves, actions, batch.rewards)
        for user, reader in enumerate(readers):
            games_of_user = np.flatnonzero(rows["game"]["user_pick"] == user)
            if len(games_of_user):
                _compare(check, reader, step.select(games_of_user))
        rows, moves = next_rows, next_moves
    assert not (rows["game"]["user_pick"] == NO_DRAW).any()
    return check


def _compare(check: TransitionCheck, reader: StateReader, step: Step) -> None:
    """Compare one step of games with the same user host."""
    model = reader.model
    states = reader.states(step.rows, step.moves)
    next_states = reader.states(step.next_rows, step.next_moves)
    codes, probabilities = _successors(reader, step.rows, states, step.actions)
    observed = model.encode(next_states)
    matched = (probabilities * (codes == observed)).sum(axis=0)
    assert (matched > 0).all(), "a transition of the core is not one of the relaxed game"
    known = next_states[:, Column.SESSION] != Session.UNKNOWN
    expected = -model.losses(next_states) - _costs(step.actions)
    assert np.allclose(step.rewards[known], expected[known]), (
        "a reward is not that of the relaxed game"
    )
    check.transitions += len(states)
    is_random = matched < 1 - 1e-9
    check.random_transitions += int(is_random.sum())
    for row in np.flatnonzero(is_random):
        key = _cause(model, states[row], step.rows[row], reader)
        for code in np.unique(codes[:, row][probabilities[:, row] > 0]):
            probability = probabilities[:, row][codes[:, row] == code].sum()
            effect = _effect(model.decode(np.array([code]))[0])
            check.frequencies.add((*key, *effect), float(observed[row] == code), probability)


def _successors(
    reader: StateReader, rows: Records, states: Int64s, actions: Int64s
) -> tuple[Int64s, Float64s]:
    """Codes and probabilities of possible next states, (outcomes, games)."""
    model = reader.model
    moved, is_remove = _after_blue(reader, rows, states, actions)
    works = np.where(is_remove, model.remove_probability(states), 1.0)
    success = np.array([_op_success(reader, row) for row in rows])
    codes, probabilities = [], []
    for share, after in ((works, moved), (1 - works, model.blue_move(states, BlueMove("wait")))):
        found = model.red_moves(after, success)
        codes += [model.encode(successors) for successors in found.states]
        probabilities += list(share * found.probabilities)
    return np.stack(codes), np.stack(probabilities)


def _after_blue(
    reader: StateReader, rows: Records, states: Int64s, actions: Int64s
) -> tuple[Int64s, Bools]:
    """States after blue's actions, and whether each was a Remove on the host with the session."""
    model = reader.model
    moved = model.blue_move(states, BlueMove("wait"))
    is_remove = np.zeros(len(states), bool)
    for index, action in enumerate(actions):
        kind, host, *_ = _core.blue_action(int(action))
        role = model.hosts.index(host) if host in model.hosts else None
        if role is None:
            continue
        one = slice(index, index + 1)
        if kind == _core.BlueKind.RESTORE:
            moved[one] = model.blue_move(states[one], BlueMove("Restore", role))
        elif kind == _core.BlueKind.REMOVE:
            if EXPLOITS.get(int(states[index, Column.POSITION]) - 1) == role:
                moved[one] = model.blue_move(states[one], BlueMove("Remove"))
                is_remove[index] = True
        elif kind == _core.BlueKind.DECOY and role != OP_SERVER0:
            condition = reader.condition(rows[index], role)
            condition = model.models[role].events.decoys(condition).get(int(action), condition)
            moved[index, Column.CONDITION + role] = model.models[role].number_of[condition]
    return moved, is_remove


def _op_success(reader: StateReader, row: np.void) -> float:
    """Probability that an exploit of Op_Server0 works with the ports that red has seen there."""
    condition = reader.condition(row, OP_SERVER0)
    return sum(exploit_outcome(reader.model.hosts[OP_SERVER0], condition))


def _costs(actions: Int64s) -> Float64s:
    kinds = [_core.blue_action(int(action))[0] for action in actions]
    return np.array([kind == _core.BlueKind.RESTORE for kind in kinds]) * _core.RESTORE_TENTHS / 10


def _cause(model: Model, state: Int64s, row: np.void, reader: StateReader) -> tuple[int, ...]:
    """What the outcome of a random transition depends on."""
    position = int(state[Column.POSITION])
    role = EXPLOITS[position] if position in EXPLOITS else EXPLOITS[position - 1]
    if role == OP_SERVER0:
        detail = round(1000 * _op_success(reader, row))
    else:
        detail = int(state[Column.CONDITION + role])
    return model.config.user, position, detail, int(state[Column.PRIVILEGED + role])


def _effect(state: Int64s) -> tuple[int, ...]:
    """What a random transition decides."""
    return tuple(int(value) for value in state[: Column.SERVICE])

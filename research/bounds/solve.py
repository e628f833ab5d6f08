"""Optimal values of the relaxed game by backward induction."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cagepool.types import Float64s, Int32s, Int64s
from research.bounds.model import Model

LENGTHS = (30, 50, 100)


class RedTable(NamedTuple):
    """Red's action per state after blue's move."""

    successors: Int32s  # (outcomes, after), indices of states
    probabilities: Float64s  # (outcomes, after)
    rewards: Float64s  # (after,)


@dataclass(frozen=True)
class Graph:
    """Reachable states, and states after blue's move, by index."""

    model: Model
    codes: Int64s  # (states,), ascending
    after_codes: Int64s  # (after,), ascending
    blue: Int32s  # (moves, states): state after the move
    remove_failed: Int32s  # (states,): state after a Remove that did not work
    remove_probability: Float64s  # (states,)
    red: tuple[RedTable, ...]  # blue chooses among them
    costs: Float64s  # (moves,)

    def index(self, states: Int64s) -> Int64s:
        """Index of states, (n, COLUMNS).

        Raises:
            KeyError: a state is not among the reachable ones.
        """
        codes = self.model.encode(states)
        found = np.searchsorted(self.codes, codes)
        if (found >= len(self.codes)).any() or (self.codes[found] != codes).any():
            raise KeyError("a state is not reachable in the model")
        return found


def build_graph(model: Model) -> Graph:
    """Enumerate what can be reached from the start of an episode."""
    states = after = np.zeros(0, np.int64)
    frontier = model.encode(model.start)
    while len(frontier):
        states = np.union1d(states, frontier)
        decoded = model.decode(frontier)
        moved = [model.blue_move(decoded, move) for move in model.moves]
        new = np.setdiff1d(np.concatenate([model.encode(m) for m in moved]), after)
        after = np.union1d(after, new)
        outcomes = model.red_moves(model.decode(new))
        reached = outcomes.states[outcomes.probabilities > 0]
        frontier = np.setdiff1d(model.encode(reached), states)
    return _tabulate(model, states, after)


def _tabulate(model: Model, codes: Int64s, after_codes: Int64s) -> Graph:
    states = model.decode(codes)

    def after_index(moved: Int64s) -> Int32s:
        return np.searchsorted(after_codes, model.encode(moved)).astype(np.int32)

    moves = model.moves
    return Graph(
        model=model,
        codes=codes,
        after_codes=after_codes,
        blue=np.stack([after_index(model.blue_move(states, move)) for move in moves]),
        remove_failed=after_index(model.blue_move(states, moves[0])),
        remove_probability=model.remove_probability(states),
        red=tuple(
            _red_table(model, codes, model.decode(after_codes), success)
            for success in model.op_success_choices()
        ),
        costs=np.array([model.blue_cost(move) for move in moves]),
    )


def _red_table(model: Model, codes: Int64s, after: Int64s, success: float) -> RedTable:
    outcomes = model.red_moves(after, success)
    found = [np.searchsorted(codes, model.encode(states)) for states in outcomes.states]
    # Outcomes of probability 0 may be outside of the reachable states.
    successors = np.minimum(np.stack(found), len(codes) - 1).astype(np.int32)
    return RedTable(successors, outcomes.probabilities, outcomes.rewards)


def after_values(graph: Graph, values: Float64s, weight: float = 1.0) -> Float64s:
    """Values of states after blue's move, from the values of the states one step later."""
    choices = []
    for table in graph.red:
        total = weight * table.rewards
        for successors, probabilities in zip(table.successors, table.probabilities, strict=True):
            total += probabilities * values[successors]
        choices.append(total)
    best: Float64s = np.max(choices, axis=0)
    return best


def move_values(graph: Graph, after: Float64s, weight: float = 1.0) -> Float64s:
    """Values of blue's moves, (moves, states), from the values after blue's move."""
    moved = after[graph.blue] - weight * graph.costs[:, None]
    failure = (1 - graph.remove_probability) * (after[graph.remove_failed] - moved[REMOVE])
    moved[REMOVE] += failure
    return moved


REMOVE = 1
"""Index of Remove in `Model.moves`."""


def backward_induction(graph: Graph, weights: Sequence[float]) -> list[Float64s]:
    """Optimal values by number of steps played, from 0 to `len(weights)`, which is the end."""
    values = [np.zeros(len(graph.codes))]
    for weight in reversed(weights):
        after = after_values(graph, values[-1], weight)
        values.append(move_values(graph, after, weight).max(axis=0))
    return values[::-1]


def length_weights(lengths: Sequence[int] = LENGTHS) -> list[float]:
    """Weights of the steps such that the weighted return is the sum of the scores by length."""
    return [float(sum(step < length for length in lengths)) for step in range(max(lengths))]

"""Floors of the loss against B_line: one figure per edition, information and length."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from cagepool.policy.defenders import Defender
from cagepool.sim.names import action_name
from cagepool.types import Float64s
from research.bounds.core_games import OptimalDefender, Scores, Solution, play_games
from research.bounds.model import Information, Model, ModelConfig, OpDecoys
from research.bounds.solve import LENGTHS, Graph, backward_induction, build_graph, length_weights
from research.bounds.start import DRAW_STEPS, best_start

USERS = ("User1", "User2", "User3", "User4")
SUM = "sum"
"""Key of the objective of one policy for all lengths."""


def build_graphs(
    edition: str, information: Information, op_decoys: OpDecoys = "free"
) -> list[Graph]:
    """One graph per user host."""
    configs = (ModelConfig(user, edition, information, op_decoys) for user in range(len(USERS)))
    return [build_graph(Model(config)) for config in configs]


def solve(graphs: Sequence[Graph], weights: Sequence[float]) -> Solution:
    """Optimal policy for one weight per step."""
    values = [backward_induction(graph, weights) for graph in graphs]
    start = best_start(graphs, [table[DRAW_STEPS] for table in values], weights[0])
    return Solution(graphs, values, start, weights)


def objectives() -> dict[str, list[float]]:
    """Weights of the steps by objective: each length, and the sum over the lengths."""
    weights = {str(length): [1.0] * length for length in LENGTHS}
    return {**weights, SUM: length_weights()}


def floors(edition: str, information: Information, op_decoys: OpDecoys = "free") -> dict[str, Any]:
    """Floors by objective, with those by user host."""
    began = time.perf_counter()
    graphs = build_graphs(edition, information, op_decoys)
    solutions = {name: solve(graphs, weights) for name, weights in objectives().items()}
    known = {name: _known_user(solution) for name, solution in solutions.items()}
    return {
        "floor": {name: _rounded(found.start.value) for name, found in solutions.items()},
        "user_known_from_start": {name: _rounded(found.mean()) for name, found in known.items()},
        "by_user": {
            user: {name: _rounded(found[index]) for name, found in known.items()}
            for index, user in enumerate(USERS)
        },
        "first_actions": [action_name(action) for action in solutions[SUM].start.actions],
        "states": sum(len(graph.codes) for graph in graphs),
        "seconds": round(time.perf_counter() - began, 1),
    }


def _known_user(solution: Solution) -> Float64s:
    """Values by user host if blue knows it from the start."""
    pairs = zip(solution.graphs, solution.values, strict=True)
    return np.array([table[0][graph.index(graph.model.start)[0]] for graph, table in pairs])


def play_optimal_policy(
    edition: str, information: Information, *, games: int, seed: int
) -> dict[str, Any]:
    """Play the optimal policy of the sum in real games, and compare its score with the floor."""
    solution = solve(build_graphs(edition, information), objectives()[SUM])
    scores = play_games(OptimalDefender(solution), games, edition, seed)
    return {
        "games": games,
        "seed": seed,
        "floor": _rounded(solution.start.value),
        **_statistics(scores, solution.start.values),
    }


def play_policy(defender: Defender, floor: Float64s, *, edition: str, games: int) -> dict[str, Any]:
    """Play a defender in real games; `floor` is by user host, of the sum over the lengths."""
    scores = play_games(defender, games, edition, seed=77_000_000)
    return {"edition": edition, "games": games, **_statistics(scores, floor)}


def _statistics(scores: Scores, floors_by_user: Float64s) -> dict[str, Any]:
    """Scores with each user host given its exact share of the draws."""
    sums = scores.totals.sum(axis=1)
    groups = [sums[scores.users == user] for user in range(len(USERS))]
    variances = [group.var(ddof=1) / len(group) for group in groups]
    error = float(np.sqrt(sum(variances)) / len(USERS))
    mean = float(np.mean([group.mean() for group in groups]))
    return {
        "score": _rounded(mean),
        "standard_error": _rounded(error),
        "above_floor_in_errors": _rounded((mean - float(floors_by_user.mean())) / error),
        "by_length": {
            str(length): _rounded(scores.totals[:, index].mean())
            for index, length in enumerate(LENGTHS)
        },
    }


def _rounded(value: float) -> float:
    return round(float(value), 4)

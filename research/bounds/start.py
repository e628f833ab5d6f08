"""The first two steps, in which blue cannot know which user host B_line will draw.

Red draws the user host in its second action. No other draw comes before, so that blue's first two
actions are a fixed pair, and the best pair belongs to one policy for all draws.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from cagepool import _core
from cagepool.types import Float64s, Int64s
from research.bounds.host_model import START
from research.bounds.model import OP_SERVER0, BlueMove, Column, Model, Service
from research.bounds.solve import Graph

DRAW_STEPS = 2
"""Steps that blue plays before it can know the user host."""


class Start(NamedTuple):
    """Blue's first two actions, and the values by user host after them."""

    actions: tuple[int, ...]
    values: Float64s  # (user hosts,)

    @property
    def value(self) -> float:
        """Mean over the user hosts."""
        return float(self.values.mean())


def best_start(graphs: Sequence[Graph], values: Sequence[Float64s], weight: float = 1.0) -> Start:
    """Optimize blue's first two actions.

    Args:
        graphs: One per user host.
        values: Optimal values after `DRAW_STEPS` steps, one array per user host.
        weight: Weight of the rewards of these steps.
    """
    starts = []
    for pair in product(_useful_actions(graphs), repeat=DRAW_STEPS):
        cost = weight * sum(_is_restore(action) for action in pair) * _core.RESTORE_TENTHS / 10
        found = [
            table[graph.index(state_after_start(graph.model, pair))[0]] - cost
            for graph, table in zip(graphs, values, strict=True)
        ]
        starts.append(Start(pair, np.array(found)))
    return max(starts, key=lambda start: round(start.value, 12))


def state_after_start(model: Model, actions: Sequence[int]) -> Int64s:
    """State, (1, COLUMNS), after the first steps with these actions, for the model's user host."""
    state = model.start
    conditions = [START] * OP_SERVER0
    for action in actions:
        _, host, *_ = _core.blue_action(action)
        if host == model.hosts[OP_SERVER0] and _is_restore(action):
            state[:, Column.SERVICE] = Service.PROTECTED
        for role in range(OP_SERVER0):
            if host == model.hosts[role]:
                events, condition = model.models[role].events, conditions[role]
                restored = events.restore(condition) if _is_restore(action) else condition
                conditions[role] = events.decoys(condition).get(action, restored)
    for role, condition in enumerate(conditions):
        state[:, Column.CONDITION + role] = model.models[role].number_of[condition]
    # Red's sweep in the first step does not depend on these conditions.
    for _ in range(DRAW_STEPS):
        state = model.red_moves(model.blue_move(state, BlueMove("wait"))).states[0]
    return state


def _useful_actions(graphs: Sequence[Graph]) -> list[int]:
    """Sleep, and the actions that change a host which red may attack."""
    hosts = {host for graph in graphs for host in graph.model.hosts}
    op_server0 = graphs[0].model.hosts[OP_SERVER0]
    actions = []
    for action in range(_core.ACTION_COUNT):
        kind, host, _, possible = _core.blue_action(action)
        is_decoy = kind == _core.BlueKind.DECOY and possible and host != op_server0
        is_useful = kind == _core.BlueKind.SLEEP or (
            host in hosts and (is_decoy or kind == _core.BlueKind.RESTORE)
        )
        if is_useful:
            actions.append(action)
    return actions


def _is_restore(action: int) -> bool:
    return _core.blue_action(action)[0] == _core.BlueKind.RESTORE

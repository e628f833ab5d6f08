"""Workflow orders: which type of host is repaired first (docs/workflow.md, section 1)."""

from itertools import permutations

import numpy as np

from cagepool import _core
from cagepool.sim.names import HOST_TYPES
from cagepool.types import Float32s

NAMED_ORDERS = {
    "critical_first": "defender>op_server>enterprise>op_host>user",
    "enterprise_focus": "enterprise>defender>op_server>op_host>user",
    "user_priority": "user>defender>enterprise>op_server>op_host",
    "operational_focus": "op_server>op_host>defender>enterprise>user",
    "balanced": "defender>enterprise>op_server>user>op_host",
    "reverse": "user>op_host>enterprise>op_server>defender",
}
ALL_ORDERS = tuple(">".join(order) for order in permutations(HOST_TYPES))
assert len(ALL_ORDERS) == _core.ORDER_COUNT


def parse(order: str) -> tuple[str, ...]:
    """Types from the most to the least urgent, of a named or written-out order.

    Raises:
        ValueError: a type is unknown, missing or repeated.
    """
    types = tuple(NAMED_ORDERS.get(order, order).split(">"))
    faults = [f"unknown {name!r}" for name in types if name not in HOST_TYPES]
    faults += [f"repeated {name!r}" for name in HOST_TYPES if types.count(name) > 1]
    faults += [f"missing {name!r}" for name in HOST_TYPES if name not in types]
    if faults:
        known = f"one of {', '.join(NAMED_ORDERS)}, or all of {', '.join(HOST_TYPES)} joined by >"
        raise ValueError(f"an order must be {known}; got {order!r} ({', '.join(faults)})")
    return types


def number(order: str) -> int:
    """The core's name for an order: its place in `ALL_ORDERS`."""
    return ALL_ORDERS.index(">".join(parse(order)))


def one_hot(order: str) -> Float32s:
    """The 25 policy inputs of an order, row by row: row = position, column = type."""
    columns = [HOST_TYPES.index(name) for name in parse(order)]
    return np.eye(len(HOST_TYPES), dtype=np.float32)[columns].ravel()

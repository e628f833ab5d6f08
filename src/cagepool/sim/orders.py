"""Workflow orders: the order in which host types are repaired (docs/workflow.md, section 1)."""

from itertools import permutations

from cagepool import _core
from cagepool.sim.names import HOST_TYPES

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


def parse_order(order: str) -> tuple[str, ...]:
    """Host types of a named or written-out order, most urgent first; joined by , or >.

    Raises:
        ValueError: a type is unknown, missing or repeated.
    """
    types = tuple(NAMED_ORDERS.get(order, order).replace(",", ">").split(">"))
    faults = [f"unknown {name!r}" for name in types if name not in HOST_TYPES]
    faults += [f"repeated {name!r}" for name in HOST_TYPES if types.count(name) > 1]
    faults += [f"missing {name!r}" for name in HOST_TYPES if name not in types]
    if faults:
        known = f"one of {', '.join(NAMED_ORDERS)}, or all of {', '.join(HOST_TYPES)} joined by ,"
        raise ValueError(f"an order must be {known}; got {order!r} ({', '.join(faults)})")
    return types


def order_number(order: str) -> int:
    """Index of an order in `ALL_ORDERS`, by which the core knows it."""
    return ALL_ORDERS.index(">".join(parse_order(order)))

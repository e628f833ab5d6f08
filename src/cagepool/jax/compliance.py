"""Compliance of blue's fixes with a traced workflow order (docs/workflow.md)."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from cagepool.jax import scenario as sc
from cagepool.jax.bits import Flag, Word, has
from cagepool.jax.game import Game
from cagepool.sim.batch import COUNTERS
from cagepool.sim.names import HOST_TYPES, HOSTS
from cagepool.sim.orders import parse_order

_COUNTED_HOSTS = sc.mask_of(*HOSTS) & ~sc.mask_of("User0")


class Fix(NamedTuple):
    """A Remove or Restore that blue is about to play."""

    is_fix: Flag
    host: Word


def order_array(order: str) -> Array:
    """Indices of the host types in the priority of a workflow order, (5,)."""
    return jnp.array([HOST_TYPES.index(kind) for kind in parse_order(order)], jnp.int32)


def count_fix(game: Game, fix: Fix, order: Array, *, observed: bool) -> Array:
    """Counters after blue's action, by the state before that action; see `batch.COUNTERS`.

    Args:
        game: State before the action.
        fix: Blue's action.
        order: Host types, most urgent first, (5,).
        observed: Whether hosts count as threatened by blue's table instead of the true state.
    """
    assert game.counters is not None
    hosts = (game.table_low | game.table_high) if observed else game.with_red
    threatened = hosts & _COUNTED_HOSTS
    priority = jnp.zeros_like(threatened)
    for rank in reversed(range(len(HOST_TYPES))):
        of_type = jnp.zeros_like(threatened)
        for kind, type_hosts in enumerate(sc.TYPE_HOSTS):
            of_type = jnp.where(order[rank] == kind, type_hosts, of_type)
        priority = jnp.where((threatened & of_type) != 0, of_type, priority)
    is_threat = threatened != 0
    is_compliant = fix.is_fix & has(threatened & priority, fix.host)
    changes = {
        "compliant": is_compliant,
        "violations": fix.is_fix & is_threat & ~is_compliant,
        "wasted": fix.is_fix & (~is_threat | (fix.host == sc.USER0)),
        "fixes": fix.is_fix,
        "threat_steps": is_threat,
    }
    return game.counters + jnp.stack([changes[name].astype(jnp.int32) for name in COUNTERS])


def alignment_reward(before: Array, after: Array, weight: Array) -> Array:
    """Alignment reward of a step from the counters around it, as float32.

    The core computes it in double precision on a grid of powers of two; the difference is below
    1e-6 times the weight.
    """
    return weight * (_compliance(after) - _compliance(before))


def _compliance(counters: Array) -> Array:
    compliant = counters[COUNTERS.index("compliant")]
    decisions = compliant + counters[COUNTERS.index("violations")]
    return compliant.astype(jnp.float32) / jnp.maximum(decisions, 1).astype(jnp.float32)

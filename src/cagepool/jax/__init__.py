"""CAGE Challenge 2 in JAX, equal to the core draw for draw (docs/jax.md)."""

from cagepool import _optional

with _optional.require("cagepool.jax", "jax", "jax"):
    from cagepool.jax.env import Cage2, Params
    from cagepool.jax.features import Features, History
    from cagepool.jax.game import State, order_array
    from cagepool.jax.native import from_native, to_native

__all__ = [
    "Cage2",
    "Features",
    "History",
    "Params",
    "State",
    "from_native",
    "order_array",
    "to_native",
]

"""Spaces of `Cage2`: gymnax's classes if gymnax is installed, else small ones of the same form."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array


@dataclass(frozen=True)
class Discrete:
    """Integers from 0 to n - 1."""

    n: int
    shape: tuple[int, ...] = ()
    dtype: Any = jnp.int32

    def sample(self, key: Array) -> Array:
        """Sample uniformly."""
        return jax.random.randint(key, self.shape, 0, self.n, self.dtype)

    def contains(self, x: Array) -> Array:
        """Whether a value is in the space."""
        return (x >= 0) & (x < self.n)


@dataclass(frozen=True)
class Box:
    """Arrays with values from `low` to `high`."""

    low: float
    high: float
    shape: tuple[int, ...]
    dtype: Any = jnp.float32

    def sample(self, key: Array) -> Array:
        """Sample uniformly."""
        if jnp.issubdtype(self.dtype, jnp.integer):
            return jax.random.randint(
                key, self.shape, int(self.low), int(self.high) + 1, self.dtype
            )
        return jax.random.uniform(key, self.shape, self.dtype, self.low, self.high)

    def contains(self, x: Array) -> Array:
        """Whether an array is in the space."""
        return jnp.all((x >= self.low) & (x <= self.high))


# gymnax is not needed, but its programs may compare classes.
BoxSpace: type[Any] = Box
DiscreteSpace: type[Any] = Discrete
with suppress(ImportError):
    from gymnax.environments import spaces

    BoxSpace, DiscreteSpace = spaces.Box, spaces.Discrete

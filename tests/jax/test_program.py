"""The compiled program of a step: what it must not contain, and its size."""

import re

import jax
import jax.numpy as jnp
import pytest

from cagepool.jax import Cage2
from tests.jax.lockstep import UNUSED_KEY

FORBIDDEN = r" (gather|scatter|sort|custom-call|infeed|outfeed|dynamic-slice)\("
# After fusion: 3659 for B_lineAgent and 4733 for the largest on JAX 0.10. A version of XLA that
# copies the step into each of its outputs would need tens of thousands.
MOST_INSTRUCTIONS = 8000


def compiled_step(env: Cage2) -> str:
    """Optimized program of a step of many games."""
    keys = jnp.zeros((64, 2), jnp.uint32)
    _, states = jax.vmap(env.reset)(keys)
    actions = jnp.zeros(64, jnp.int32)
    play = jax.jit(jax.vmap(lambda state, action: env.step(UNUSED_KEY, state, action)[:5]))
    return str(play.lower(states, actions).compile().as_text())


@pytest.mark.parametrize(
    "env",
    [
        Cage2(),
        pytest.param(
            Cage2(red="mix", edition="leaderboard", green=True, order="reverse"),
            marks=pytest.mark.soak,
        ),
    ],
    ids=["smallest", "largest"],
)
def test_a_step_compiles_to_a_small_program_of_plain_operations(env: Cage2) -> None:
    program = compiled_step(env)

    instructions = sum(" = " in line for line in program.splitlines())
    assert not re.findall(FORBIDDEN, program)
    assert not re.findall(r"\b[sufc](64|128)\[", program)
    assert instructions < MOST_INSTRUCTIONS

"""Games that move between the core and JAX in mid-episode."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cagepool.jax import Cage2, from_native, to_native
from cagepool.sim import Batch, BatchConfig
from tests.jax.lockstep import UNUSED_KEY

ONE = np.zeros(1, np.int64)
SETTINGS = {
    "scripted": Cage2(red="mix", edition="leaderboard", green=True),
    "given": Cage2(red="given", order="critical_first"),
}


def make_batch(env: Cage2) -> Batch:
    return Batch(
        1,
        BatchConfig(
            red=env.red,
            edition=env.edition,
            green=env.green,
            order=env.order,
            autoreset="same_step",
        ),
    )


def random_actions(env: Cage2, steps: int, seed: int) -> list[tuple[np.ndarray, np.ndarray | None]]:
    rng = np.random.default_rng(seed)
    given = env.red == "given"
    return [
        (rng.integers(0, 145, 1), rng.integers(0, 44, 1) if given else None) for _ in range(steps)
    ]


def played_batch(env: Cage2, steps: int) -> Batch:
    batch = make_batch(env)
    batch.reset(np.array([11], np.uint64))
    for actions, red_actions in random_actions(env, steps, seed=1):
        batch.step(actions, red_actions)
    return batch


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("scripted", 37),
        *(
            pytest.param(name, steps, marks=pytest.mark.soak)
            for name, steps in (*product(SETTINGS, (0, 99)), ("given", 37))
        ),
    ],
)
def test_a_game_goes_on_in_jax_and_back_in_the_core(name: str, steps: int) -> None:
    env = SETTINGS[name]
    batch = played_batch(env, steps)
    state = from_native(batch.save(ONE)[0])
    returned = make_batch(env)
    returned.restore(ONE, [to_native(state, order=env.order)])
    step = jax.jit(lambda state, action: env.step(UNUSED_KEY, state, action))

    for actions, red_actions in random_actions(env, 50, seed=2):
        batch.step(actions, red_actions)
        returned.step(actions, red_actions)
        blue = jnp.asarray(actions[0])
        action = blue if red_actions is None else (blue, jnp.asarray(red_actions[0]))
        observation, state, reward, _, _, _ = step(state, action)

        np.testing.assert_array_equal(batch.observations[0], observation)
        np.testing.assert_array_equal(batch.observations, returned.observations)
        assert np.float32(batch.rewards[0]) == reward
        assert batch.moves == returned.moves
        assert batch.true_state == returned.true_state
        truth = env.true_state(state)
        for field in batch.true_state.dtype.names or ():
            np.testing.assert_array_equal(batch.true_state[field][0], truth[field], field)
        if env.order is not None:
            np.testing.assert_array_equal(batch.counters, returned.counters)
    returned.restore(ONE, [to_native(state, order=env.order)])  # after 50 steps in JAX
    for actions, red_actions in random_actions(env, 20, seed=3):
        batch.step(actions, red_actions)
        returned.step(actions, red_actions)
        np.testing.assert_array_equal(batch.observations, returned.observations)
        assert batch.true_state == returned.true_state


def test_the_first_state_of_a_seed_is_the_same_in_both() -> None:
    env = Cage2(red="RedMeanderAgent")
    _, state = env.reset(jax.random.PRNGKey(2**31 + 5))
    batch = make_batch(env)
    batch.reset(np.array([2**31 + 5], np.uint64))

    native = from_native(batch.save(ONE)[0])

    for ours, saved in zip(jax.tree.leaves(state), jax.tree.leaves(native), strict=True):
        np.testing.assert_array_equal(ours, saved)
    returned = make_batch(env)
    returned.restore(ONE, [to_native(state)])
    assert returned.save(ONE) == batch.save(ONE)


def test_a_damaged_snapshot_is_refused() -> None:
    blob = played_batch(SETTINGS["scripted"], 10).save(ONE)[0]

    with pytest.raises(ValueError, match="a snapshot must be whole"):
        from_native(blob[:60])
    with pytest.raises(ValueError, match="a snapshot must be undamaged"):
        from_native(blob[:-1] + bytes([blob[-1] ^ 1]))


def test_a_batch_of_states_is_not_one_game() -> None:
    env = Cage2()
    _, states = jax.vmap(env.reset)(jax.random.split(jax.random.PRNGKey(0), 3))

    with pytest.raises(
        ValueError, match=r"state must be one game, got a batch of the shape \(3,\)"
    ):
        to_native(states)


@pytest.mark.parametrize("order", [None, "critical_first"])
def test_the_order_of_a_snapshot_must_match_the_state(order: str | None) -> None:
    env = Cage2(order=None if order else "critical_first")
    _, state = env.reset(jax.random.PRNGKey(0))

    with pytest.raises(
        ValueError, match="order must be given if and only if compliance is tracked"
    ):
        to_native(state, order=order)

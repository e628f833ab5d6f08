"""The interface of `Cage2`, as gymnax and JAX programs use it."""

import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cagepool.jax import Cage2, Params, order_array
from cagepool.sim import Batch, BatchConfig
from cagepool.sim.compliance import ALL_ORDERS
from cagepool.sim.masks import action_masks
from tests.jax.lockstep import UNUSED_KEY

ONE = np.zeros(1, np.int64)


def batch_of(seeds: list[int], **settings: Any) -> Batch:
    batch = Batch(len(seeds), BatchConfig(autoreset="same_step", **settings))
    batch.reset(np.array(seeds, np.uint64))
    return batch


@pytest.mark.parametrize("key", [jax.random.PRNGKey(7), jax.random.key(7)], ids=["raw", "typed"])
def test_the_key_of_a_seed_plays_the_games_of_that_seed_over_two_resets(key: jax.Array) -> None:
    env, batch = Cage2(red="mix"), batch_of([7], red="mix", max_steps=20)
    params = Params(max_steps_in_episode=20)
    _, state = env.reset(key, params)
    rng = np.random.default_rng(0)

    for _ in range(50):
        actions = rng.integers(0, 145, 1)
        batch.step(actions)
        observation, state, reward, terminated, truncated, _ = env.step(
            UNUSED_KEY, state, jnp.asarray(actions[0]), params
        )
        np.testing.assert_array_equal(batch.observations[0], observation)
        assert (reward, terminated, truncated) == (
            np.float32(batch.rewards[0]),
            False,
            batch.truncations[0],
        )
        assert int(env.true_state(state)["red"]) == batch.true_state["red"][0]


def test_the_horizon_may_be_traced() -> None:
    env = Cage2()
    horizons = jnp.array([1, 3, 5])

    def play(horizon: jax.Array) -> jax.Array:
        params = Params(max_steps_in_episode=horizon)
        _, state = env.reset(jax.random.PRNGKey(0), params)

        def step(state: Any, _: None) -> tuple[Any, jax.Array]:
            _, state, _, _, truncated, _ = env.step(UNUSED_KEY, state, 0, params)
            return state, truncated

        return jax.lax.scan(step, state, None, 10)[1].sum()

    assert jax.jit(jax.vmap(play))(horizons).tolist() == [10, 3, 2]


@pytest.mark.soak
def test_all_orders_are_counted_in_one_program() -> None:
    env = Cage2(red="RedMeanderAgent", order="critical_first")
    orders = jnp.stack([order_array(order) for order in ALL_ORDERS])
    actions = np.random.default_rng(0).integers(15, 28, 60)  # Remove

    def count(order: jax.Array) -> jax.Array:
        params = Params(max_steps_in_episode=100, order=order)
        _, state = env.reset(jax.random.PRNGKey(4), params)

        def step(state: Any, action: jax.Array) -> tuple[Any, None]:
            return env.step(UNUSED_KEY, state, action, params)[1], None

        counters: jax.Array = jax.lax.scan(step, state, jnp.asarray(actions))[0].counters
        return counters

    counters = jax.jit(jax.vmap(count))(orders)

    batch = batch_of([4] * len(ALL_ORDERS), red="RedMeanderAgent", order=list(ALL_ORDERS))
    for action in actions:
        batch.step(np.full(len(ALL_ORDERS), action))
    np.testing.assert_array_equal(batch.counters, counters)
    assert len(np.unique(batch.counters, axis=0)) > 1


@pytest.mark.soak
def test_the_alignment_reward_is_that_of_the_core_within_rounding() -> None:
    settings: dict[str, Any] = {"red": "RedMeanderAgent", "order": "reverse"}
    env, batch = Cage2(**settings), batch_of([1], alignment=30.0, **settings)
    params = env.default_params.replace(alignment=30.0)
    _, state = env.reset(jax.random.PRNGKey(1), params)

    for action in np.random.default_rng(0).integers(15, 28, 90):
        batch.step(np.array([action]))
        _, state, _, _, _, info = env.step(UNUSED_KEY, state, jnp.asarray(action), params)
        # float32 instead of float64: two quotients of at most 1, each rounded to 2 ** -24
        assert abs(info["alignment"] - batch.alignment[0]) <= 30.0 * 2**-22


@pytest.mark.soak
def test_masks_are_those_of_the_native_games() -> None:
    env, batch = Cage2(), batch_of([0])
    _, state = env.reset(jax.random.PRNGKey(0))

    for action in np.random.default_rng(0).integers(28, 145, 80):  # decoys and Restore
        batch.step(np.array([action]))
        _, state, _, _, _, _ = env.step(UNUSED_KEY, state, jnp.asarray(action))
        np.testing.assert_array_equal(
            action_masks(batch.true_state["decoys"])[0], env.action_mask(state)
        )


@pytest.mark.soak
def test_a_reseeded_game_has_the_future_of_its_new_seed() -> None:
    env, batch = Cage2(red="RedMeanderAgent", green=True), batch_of([3], red="meander", green=True)
    _, state = env.reset(jax.random.PRNGKey(3))
    batch.reseed(ONE, np.array([99], np.uint64))
    state = env.reseed(state, jax.random.PRNGKey(99))

    for _ in range(40):
        batch.step(ONE)
        observation, state, _, _, _, _ = env.step(UNUSED_KEY, state, 0)
        np.testing.assert_array_equal(batch.observations[0], observation)


@pytest.mark.soak
def test_a_step_without_a_reset_stays_at_the_end() -> None:
    env, params = Cage2(), Params(max_steps_in_episode=1)
    _, state = env.reset(jax.random.PRNGKey(0), params)

    _, state, reward, terminated, _ = env.step_env(UNUSED_KEY, state, 0, params)

    assert env.is_truncated(state, params)
    assert not terminated
    assert reward == 0


def test_the_legacy_form_has_five_values() -> None:
    env, params = Cage2().legacy, Params(max_steps_in_episode=1)
    _, state = env.reset(jax.random.PRNGKey(0), params)

    _, _, _, done, info = env.step(UNUSED_KEY, state, 0, params)

    assert done
    assert info["episode_length"] == 1


def test_an_action_out_of_range_is_clamped() -> None:
    env = Cage2()
    _, state = env.reset(jax.random.PRNGKey(0))
    actions = jnp.array([-5, 0, 144, 145, 10**6])

    info = jax.vmap(env.step, in_axes=(None, None, 0))(UNUSED_KEY, state, actions)[-1]

    assert info["moves"]["blue_action"].tolist() == [0, 0, 144, 144, 144]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"red": "BLine"}, "red must be one of B_lineAgent, .*; got 'BLine'"),
        ({"red": "given+sleep"}, "a given red cannot be mixed with others, got 'given.sleep'"),
        ({"edition": "3"}, "edition must be one of 2.1, leaderboard; got '3'"),
        ({"observation_dtype": "int8"}, "observation_dtype must be float32 or uint8, got 'int8'"),
        ({"order": "user"}, "an order must be one of .*; got 'user'"),
        ({"knowledge": "all"}, "knowledge must be one of true, observed; got 'all'"),
        ({"max_steps": 0}, "max_steps must be from 1 to 65535, got 0"),
        ({"definition": "fix-type"}, "definition must be the default in JAX, got 'fix-type'"),
        ({"session_capacity": 0}, "session_capacity must be from 1 to 65535, got 0"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Cage2(**settings)


def test_settings_are_the_defaults_of_the_parameters() -> None:
    params = Cage2(max_steps=20, order="reverse", alignment=3.0).default_params
    assert (params.max_steps_in_episode, params.alignment) == (20, 3.0)
    assert params.order is not None


def test_a_key_of_another_generator_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a key must have two words, .* got 4 words"):
        Cage2().reset(jax.random.key(0, impl="rbg"))


def test_several_keys_need_vmap() -> None:
    with pytest.raises(ValueError, match=r"a key must be one key, got shape \(3, 2\)"):
        Cage2().reset(jax.random.split(jax.random.PRNGKey(0), 3))


@pytest.mark.parametrize(
    ("red", "action", "sentence"),
    [
        ("b_line", 1.5, r"must be one integer, got float32\[\]"),
        ("b_line", jnp.zeros(3, jnp.int32), r"must be one integer, got int32\[\], int32\[\]"),
        ("b_line", (1, 2), "must be one integer, got"),
        ("given", 1, "must be two integers, blue's and red's, got"),
    ],
)
def test_an_action_of_another_form_is_refused(red: str, action: Any, sentence: str) -> None:
    env = Cage2(red=red)
    _, state = env.reset(jax.random.PRNGKey(0))

    with pytest.raises(TypeError, match=sentence):
        env.step(UNUSED_KEY, state, action)


def test_parameters_and_states_of_another_environment_are_refused() -> None:
    env, with_order = Cage2(), Cage2(order="reverse")
    _, state = env.reset(jax.random.PRNGKey(0))

    with pytest.raises(ValueError, match="max_steps_in_episode must be from 1 to 65535, got 0"):
        Params(max_steps_in_episode=0)
    with pytest.raises(ValueError, match=r"order must have 5 host types, got shape \(3,\)"):
        Params(order=jnp.zeros(3, jnp.int32))
    with pytest.raises(ValueError, match="a state must track compliance if and only if Cage2 has"):
        with_order.step(UNUSED_KEY, state, 0)
    with pytest.raises(ValueError, match=r"params\.order must be given if Cage2 has an order"):
        with_order.step(UNUSED_KEY, state, 0, Params())
    with pytest.raises(ValueError, match="a state must log sessions if and only if red is given"):
        Cage2(red="given").step(UNUSED_KEY, state, (0, 0))


def test_a_traced_horizon_out_of_range_is_clamped() -> None:
    def first_end(env: Cage2, action: Any, horizon: int) -> int:
        params = Params(max_steps_in_episode=jnp.asarray(horizon))
        _, state = env.reset(jax.random.PRNGKey(0), params)
        for step in range(1, 5):
            _, state, _, _, truncated, _ = env.step(UNUSED_KEY, state, action, params)
            if truncated:
                return step
        return 0

    assert first_end(Cage2(), 0, 0) == 1
    assert first_end(Cage2(red="given", session_capacity=3), (0, 0), 50) == 3


def test_spaces_sample_their_elements() -> None:
    env = Cage2(observation_dtype="uint8")
    key = jax.random.PRNGKey(0)

    for space in (env.action_space(), env.red_action_space(), env.observation_space()):
        assert space.contains(space.sample(key))
    assert (env.action_space().n, env.red_action_space().n) == (145, 44)
    assert env.observation_space().shape == (52,)


X64 = """
import jax, numpy as np
from cagepool.jax import Cage2
from tests.jax.lockstep import Lockstep
assert jax.config.jax_enable_x64
Lockstep(Cage2(red="mix", green=True), games=16).play(50)
Lockstep(Cage2(red="given", order="reverse"), games=16).play(50)
"""
TWO_DEVICES = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, PartitionSpec
from cagepool.jax import Cage2
shard_map = getattr(jax, "shard_map", None)
if shard_map is None:
    from jax.experimental.shard_map import shard_map
env = Cage2(red="mix")
keys = jax.vmap(jax.random.PRNGKey)(jnp.arange(8))
actions = jnp.asarray(np.random.default_rng(0).integers(0, 145, (30, 8)))

def play(keys, actions):
    _, states = jax.vmap(env.reset)(keys)
    def step(states, row):
        _, states, rewards, *_ = jax.vmap(lambda s, a: env.step(keys[0], s, a))(states, row)
        return states, rewards
    return jax.lax.scan(step, states, actions)[1]

mesh = Mesh(np.array(jax.devices()), ("games",))
spec = PartitionSpec("games"), PartitionSpec(None, "games")
sharded = jax.jit(shard_map(play, mesh=mesh, in_specs=spec, out_specs=spec[1]))
assert len(jax.devices()) == 2
np.testing.assert_array_equal(play(keys, actions), sharded(keys, actions))
nested = jax.vmap(jax.vmap(env.reset))(keys.reshape(2, 4, 2))[1]
flat = jax.vmap(env.reset)(keys)[1]
for a, b in zip(jax.tree.leaves(nested), jax.tree.leaves(flat)):
    np.testing.assert_array_equal(a.reshape(b.shape), b)
step = lambda state, action: env.step(keys[0], state, action)[2]
rewards = jax.vmap(jax.vmap(step))(nested, actions[0].reshape(2, 4))
np.testing.assert_array_equal(rewards.reshape(8), jax.vmap(step)(flat, actions[0]))
"""


@pytest.mark.soak
@pytest.mark.parametrize(
    ("program", "variable"),
    [
        (X64, {"JAX_ENABLE_X64": "1"}),
        (TWO_DEVICES, {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}),
    ],
    ids=["x64", "two devices"],
)
def test_games_are_the_same_under_other_settings_of_jax(
    program: str, variable: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variable.items():
        monkeypatch.setenv(name, value)

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr


def test_importing_the_package_does_not_import_jax() -> None:
    program = "import sys, cagepool; sys.exit('jax' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

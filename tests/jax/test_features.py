"""Policy features in JAX equal those of the native encoder."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cagepool.jax import Features, order_array
from cagepool.sim import Batch, BatchConfig
from cagepool.sim.encoder import FeatureConfig, FeatureEncoder

ORDER = "user_priority"


@pytest.mark.parametrize(
    "config",
    [
        FeatureConfig(order_input=True),
        pytest.param(
            FeatureConfig(actions="all", scan_memory=False, last_action=False),
            marks=pytest.mark.soak,
        ),
        pytest.param(
            FeatureConfig(actions="core", decoys_placed=False, time_left=False),
            marks=pytest.mark.soak,
        ),
    ],
    ids=["default", "all", "core"],
)
def test_features_and_masks_equal_those_of_the_native_encoder(config: FeatureConfig) -> None:
    encoder = FeatureEncoder(config, 1, horizon=70)
    encoder.set_order(ORDER)
    features = Features(config, horizon=70)
    assert (features.size, features.n_choices) == (encoder.size, encoder.n_choices)
    update, encode = jax.jit(features.update), jax.jit(features.encode)
    batch = Batch(1, BatchConfig(red="mix", green=True))
    batch.reset(np.array([3], np.uint64))
    rng, history = np.random.default_rng(0), features.start()

    for _ in range(90):  # beyond the horizon, where no time is left
        rows = np.zeros((1, encoder.size), np.float32)
        masks = np.zeros((1, encoder.n_choices), np.uint8)
        encoder.encode(batch.observations, rows, masks)
        observation = jnp.asarray(batch.observations[0])
        row, mask = encode(observation, history, order_array(ORDER))
        np.testing.assert_array_equal(rows[0], row)
        np.testing.assert_array_equal(masks[0] != 0, mask)

        actions = rng.integers(0, 145, 1)
        batch.step(actions)
        encoder.update(actions, batch.observations)
        history = update(history, jnp.asarray(actions[0]), jnp.asarray(batch.observations[0]))


def test_a_choice_is_the_action_of_the_set() -> None:
    features = Features()

    actions = [int(features.action(jnp.asarray(choice))) for choice in range(features.n_choices)]

    assert actions == features.action_indices.tolist()


def test_the_feature_of_the_order_needs_an_order() -> None:
    features = Features(FeatureConfig(order_input=True))

    with pytest.raises(ValueError, match="encode needs an order for the feature order_input"):
        features.encode(jnp.zeros(52), features.start())

"""Generalised advantage estimates, against their definition."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cagepool.train.advantage import advantages


def by_definition(
    rewards: NDArray[np.float32],
    values: NDArray[np.float32],
    ends: NDArray[np.bool_],
    gamma: float,
    decay: float,
) -> NDArray[np.float64]:
    """Each advantage by itself: the sum of all later errors of its own episode."""
    steps, games = rewards.shape
    result = np.zeros((steps, games))
    for game in range(games):
        for start in range(steps):
            weight = 1.0
            for step in range(start, steps):
                ended = ends[step, game]
                next_value = 0.0 if ended else float(values[step + 1, game])
                error = float(rewards[step, game]) + gamma * next_value - float(values[step, game])
                result[start, game] += weight * error
                weight *= gamma * decay
                if ended:
                    break
    return result


@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(1, 12),
    games=st.integers(1, 4),
    share=st.sampled_from([0.0, 0.2, 1.0]),
    gamma=st.floats(0, 1),
    decay=st.floats(0, 1),
)
def test_advantages_are_the_discounted_errors_of_their_own_episode(
    *, seed: int, steps: int, games: int, share: float, gamma: float, decay: float
) -> None:
    rng = np.random.default_rng(seed)
    rewards = rng.standard_normal((steps, games)).astype(np.float32)
    values = rng.standard_normal((steps + 1, games)).astype(np.float32)
    ends = rng.random((steps, games)) < share

    found = advantages(rewards, values, ends, gamma, decay)

    assert found.dtype == np.float32
    expected = by_definition(rewards, values, ends, gamma, decay)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)  # single precision


def test_nothing_of_a_later_episode_reaches_an_earlier_one() -> None:
    rewards = np.ones((6, 1), np.float32)
    values = np.ones((7, 1), np.float32)
    ends = np.array([[False], [False], [True], [False], [False], [False]])
    before = advantages(rewards, values, ends, 0.9, 0.9)

    rewards[3:] = 1e6
    values[3:] = -1e6
    after = advantages(rewards, values, ends, 0.9, 0.9)

    np.testing.assert_array_equal(after[:3], before[:3])
    assert (after[3:] != before[3:]).all()

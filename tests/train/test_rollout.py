"""Contents of a rollout, with a toy environment whose observations encode what happened."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cagepool.train.collectors import make_actor
from cagepool.train.config import PpoConfig
from cagepool.train.learner import Learner
from cagepool.train.ppo import Ppo, make_learner
from cagepool.train.rollout import FinishedEpisodes, Rollout, RolloutShape
from cagepool.train.samplers import EnvSampler, ObservationEncoder
from tests.train.toy_envs import ACTIONS, LENGTHS, Counting, reward_of

CONFIG = PpoConfig(hidden=(4,))
NUMBER, EPISODE, STEP, LAST = range(4)  # values of an observation


class Setup(NamedTuple):
    """Sampler of toy environments with a policy and a buffer."""

    sampler: EnvSampler
    learner: Learner
    rollout: Rollout

    def rollouts(self) -> Iterator[tuple[Rollout, FinishedEpisodes]]:
        """Collect until all episodes have ended."""
        actor = make_actor(CONFIG, self.rollout.shape)
        actor.load_weights(self.learner.weights())
        while not self.sampler.is_finished:
            self.rollout.restart()
            yield self.rollout, self.sampler.collect(actor, self.rollout)


def make_setup(n_envs: int, total_episodes: int, steps: int) -> Setup:
    envs = SyncVectorEnv([Counting] * n_envs, autoreset_mode=AutoresetMode.SAME_STEP)
    encoder = ObservationEncoder(4, ACTIONS)
    rng = np.random.default_rng(0)
    sampler = EnvSampler(envs, encoder, total_episodes, reward_scale=0.5, rng=rng)
    shape = RolloutShape(steps, n_envs, 4, ACTIONS, masked=False)
    rollout = Rollout(shape)
    sampler.reset(0, rollout)
    return Setup(sampler, make_learner(CONFIG, shape, seed=0), rollout)


def make_ppo(learner: Learner, config: PpoConfig = CONFIG) -> Ppo:
    return Ppo(learner, config, np.random.default_rng(0))


def test_row_t_holds_the_features_before_action_t_and_its_results() -> None:
    rollouts = make_setup(n_envs=3, total_episodes=1000, steps=25).rollouts()

    for _ in range(2):
        rollout, _ = next(rollouts)
        for step, env in np.ndindex(25, 3):
            before, after = rollout.features[step : step + 2, env]
            action = rollout.actions[step, env]
            assert rollout.rewards[step, env] == 0.5 * reward_of(before, int(action))
            if rollout.dones[step, env]:
                assert after.tolist() == [env, before[EPISODE] + 1, 0, -1]
            else:
                assert after.tolist() == [env, before[EPISODE], before[STEP] + 1, action]
        assert rollout.dones.sum() > 10


def test_the_stored_log_probabilities_are_those_of_the_stored_actions() -> None:
    setup = make_setup(n_envs=3, total_episodes=1000, steps=25)
    rollout, _ = next(setup.rollouts())

    weights = [array.astype(np.float64) for array in setup.learner.weights().values()][:4]
    hidden = np.tanh(rollout.features[:-1] @ weights[0].T + weights[1])
    logits = hidden @ weights[2].T + weights[3]
    logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
    expected = np.take_along_axis(logits, rollout.actions[..., None], -1)[..., 0]

    np.testing.assert_allclose(rollout.log_probs, expected, rtol=1e-5)


def test_the_last_states_of_truncated_episodes_are_stored_and_no_others() -> None:
    rollout, _ = next(make_setup(n_envs=3, total_episodes=1000, steps=25).rollouts())

    stored = {
        (truncation.step, int(env)): row.tolist()
        for truncation in rollout.truncations
        for env, row in zip(truncation.env_ids, truncation.features, strict=True)
    }
    expected = {
        (int(step), int(env)): [
            env,
            rollout.features[step, env, EPISODE],
            rollout.features[step, env, STEP] + 1,
            rollout.actions[step, env],
        ]
        for step, env in np.argwhere(rollout.dones)
        if rollout.features[step, env, EPISODE] % 2 == 1
    }
    assert stored == expected
    assert 3 < len(stored) < rollout.dones.sum()


@pytest.mark.parametrize("bootstrap", [True, False])
def test_truncation_bootstraps_the_value_of_the_last_state_and_termination_does_not(
    bootstrap: bool,
) -> None:
    setup = make_setup(n_envs=3, total_episodes=1000, steps=25)
    rollout, _ = next(setup.rollouts())
    config = PpoConfig(gamma=0.9, gae_lambda=0.0, bootstrap=bootstrap, normalize_advantage=False)

    transitions, _ = make_ppo(setup.learner, config).transitions(rollout)

    advantages = transitions.advantages.reshape(25, 3)
    for step, env in np.ndindex(25, 3):
        state, action = rollout.features[step, env], int(rollout.actions[step, env])
        is_truncated = state[EPISODE] % 2 == 1
        next_state = [state[NUMBER], state[EPISODE], state[STEP] + 1, action]
        next_value = critic_value(setup.learner, next_state)
        goes_on = not rollout.dones[step, env] or (is_truncated and bootstrap)
        value = critic_value(setup.learner, state)
        error = 0.5 * reward_of(state, action) + 0.9 * next_value * goes_on - value
        assert advantages[step, env] == pytest.approx(error, rel=1e-4, abs=1e-3)


def critic_value(learner: Learner, state: list[float] | NDArray[np.float32]) -> float:
    weights = list(learner.weights().values())[4:]
    hidden = np.tanh(weights[0] @ np.array(state, np.float32) + weights[1])
    return float((weights[2] @ hidden + weights[3])[0])


@settings(max_examples=50)
@given(n_envs=st.integers(1, 6), total_episodes=st.integers(1, 30), steps=st.integers(1, 9))
def test_exactly_the_requested_episodes_are_counted(
    n_envs: int, total_episodes: int, steps: int
) -> None:
    setup = make_setup(n_envs, total_episodes, steps)
    ppo = make_ppo(setup.learner)
    counted: list[list[float]] = []
    returns: list[float] = []
    lengths: list[int] = []
    for rollout, finished in setup.rollouts():
        transitions, _ = ppo.transitions(rollout)
        features = transitions.features.tolist()
        counted += [
            [*row, done] for row, done in zip(features, counted_dones(rollout), strict=True)
        ]
        returns += finished.returns
        lengths += finished.lengths

    assert len(returns) == len(lengths) == setup.sampler.ended_episodes == total_episodes
    assert len(counted) == sum(lengths) == setup.sampler.episode_steps
    # The transitions are whole episodes, with each of their steps once.
    episodes: dict[tuple[float, ...], list[float]] = {}
    for row in counted:
        episodes.setdefault((row[NUMBER], row[EPISODE]), []).append(row[STEP])
    for (env, episode), episode_steps in episodes.items():
        assert episode_steps == [*range(LENGTHS[int(env + episode) % len(LENGTHS)])]
    assert len(episodes) == total_episodes
    assert sum(row[-1] for row in counted) == total_episodes


def counted_dones(rollout: Rollout) -> list[bool]:
    """Whether the episode ended, per counted row."""
    counted = rollout.counted[: rollout.steps]
    return [bool(done) for done in rollout.dones[: rollout.steps][counted]]


def test_returns_and_lengths_are_those_of_whole_episodes() -> None:
    setup = make_setup(n_envs=2, total_episodes=12, steps=5)
    rewards: dict[tuple[float, float], list[float]] = {}  # by environment and episode
    finished_episodes: list[tuple[int, float]] = []
    for rollout, finished in setup.rollouts():
        for step, env in np.argwhere(rollout.counted[: rollout.steps]):
            number, episode = rollout.features[step, env, [NUMBER, EPISODE]].tolist()
            reward = 2 * float(rollout.rewards[step, env])
            rewards.setdefault((number, episode), []).append(reward)
        finished_episodes += zip(finished.lengths, finished.returns, strict=True)

    expected = sorted((len(values), sum(values)) for values in rewards.values())
    assert sorted(finished_episodes) == expected

"""RLlib samples exactly the steps that were played: no reset is a step, no step is lost."""

from collections import defaultdict

import numpy as np
import pytest
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from cagepool.envs import Cage2Env
from cagepool.integrations.rllib import RunnerPool, ppo_config

LENGTHS = (5, 7, 11)  # of three games; the length identifies the game
SEED = 3

pytestmark = pytest.mark.filterwarnings(  # RLlib's own, of its second runner in a process
    "ignore:.*Overriding environment rllib-single-agent-env-v0"
)


def sampled(calls: int) -> dict[int, list[list[SingleAgentEpisode]]]:
    """Whole episodes by length, each as the chunks that RLlib collected."""
    config = ppo_config(0, len(LENGTHS), fragment=8, seed=SEED, max_steps=LENGTHS, red="mix")
    runner = SingleAgentEnvRunner(config=config, worker_index=0)
    pieces = defaultdict(list)
    for piece in (piece for _ in range(calls) for piece in runner.sample()):
        pieces[piece.id_].append(piece)
    runner.stop()
    episodes = defaultdict(list)
    for episode in pieces.values():
        if episode[-1].is_done:
            episodes[episode[-1].t].append(episode)
    return episodes


def test_every_episode_is_one_of_the_games_from_the_first_step_to_the_last() -> None:
    episodes = sampled(calls=6)

    assert sorted(episodes) == sorted(LENGTHS)
    seeds = np.random.SeedSequence(SEED).generate_state(len(LENGTHS)).tolist()
    for length, seed in zip(LENGTHS, seeds, strict=True):
        game = Cage2Env(max_steps=length, red="mix")
        observation, _ = game.reset(seed=seed)
        assert len(episodes[length]) > 2
        for pieces in episodes[length]:
            for piece in pieces:
                np.testing.assert_array_equal(piece.get_observations(0), observation)
                for step, action in enumerate(piece.get_actions()):
                    observation, reward, _, truncated, _ = game.step(action)
                    np.testing.assert_array_equal(piece.get_observations(step + 1), observation)
                    assert piece.get_rewards(step) == reward
            assert truncated
            assert (piece.is_truncated, piece.is_terminated) == (True, False)
            observation, _ = game.reset()


def test_no_two_runners_play_the_same_games() -> None:
    keys = []
    for seed in (1, 2, 3):  # as RLlib seeds its env runners
        pool = RunnerPool({"num_envs": 4})
        pool.reset(seed=seed)
        keys += [pool.batch.stream_key(game) for game in range(4)]

    assert len(set(keys)) == 12


def test_the_games_start_anew_when_rllib_expects_it() -> None:
    with pytest.raises(TypeError, match="autoreset"):
        RunnerPool({"num_envs": 4, "autoreset": "same_step"})

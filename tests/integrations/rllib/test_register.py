"""RLlib knows the game by its name in older documents."""

from typing import Any

import pytest
from ray.rllib.algorithms.ppo import PPO, PPOConfig
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

from cagepool.envs import Cage2Env
from cagepool.integrations.rllib import RunnerPool, register

pytestmark = pytest.mark.filterwarnings(  # RLlib's own, of its second runner in a process
    "ignore:.*Overriding environment rllib-single-agent-env-v0"
)


def config_of(mode: str) -> PPOConfig:
    register()
    config = PPOConfig().environment("CAGE2", env_config={"red_agent_type": "meander"})
    return config.env_runners(
        num_env_runners=0, num_envs_per_env_runner=2, gym_env_vectorize_mode=mode
    )


@pytest.mark.parametrize("mode", ["sync", "vector_entry_point"])
def test_a_runner_plays_games_by_the_name(mode: str) -> None:
    runner = SingleAgentEnvRunner(config=config_of(mode), worker_index=0)

    episodes = runner.sample(num_timesteps=50, random_actions=True)

    assert sum(len(episode) for episode in episodes) >= 50
    games: Any = getattr(runner.env, "unwrapped", None)
    if mode == "sync":
        assert all(isinstance(game.unwrapped, Cage2Env) for game in games.envs)
    else:
        assert isinstance(games, RunnerPool)
    runner.stop()


@pytest.mark.ray
@pytest.mark.soak
@pytest.mark.usefixtures("ray_here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_an_algorithm_trains_on_the_name_in_its_settings() -> None:
    config = config_of("vector_entry_point")
    config.training(train_batch_size_per_learner=200, minibatch_size=100, num_epochs=1)
    algorithm = config.build_algo()
    assert isinstance(algorithm, PPO)

    result = algorithm.train()

    assert result["env_runners"]["num_env_steps_sampled"] >= 200
    algorithm.stop()

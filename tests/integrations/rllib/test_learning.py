"""RLlib's PPO learns on native games, with env runners in their own processes."""

import pytest

from cagepool.integrations.rllib import ppo_config

pytestmark = [pytest.mark.ray, pytest.mark.soak, pytest.mark.usefixtures("ray_here")]


def test_a_few_updates_improve_the_return() -> None:
    algorithm = ppo_config(2, 50, seed=0, red="B_lineAgent").build_algo()

    told = [algorithm.train()["env_runners"] for _ in range(5)]
    algorithm.stop()

    returns = [one["episode_return_mean"] for one in told]
    assert [one["num_env_steps_sampled"] for one in told] == [10_000] * 5
    assert {one["episode_len_mean"] for one in told} == {100}
    # A random policy loses about 750 per game, standard deviation 200; each mean is of 100 games.
    assert returns[0] < -600
    assert returns[-1] > returns[0] / 2

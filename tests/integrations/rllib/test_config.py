"""PPO configurations: valid ones work, invalid ones are refused before Ray starts."""

from typing import Any

import pytest

from cagepool.integrations.rllib import RunnerPool, ppo_config


@pytest.mark.parametrize(("runners", "games"), [(20, 5), (100, 1)])
def test_a_hundred_games_make_batches_of_ten_thousand_steps(runners: int, games: int) -> None:
    config = ppo_config(runners, games, fragment=100, red="B_lineAgent")

    config.validate()
    settings = config.to_dict()
    assert settings["num_env_runners"] == runners
    assert settings["num_envs_per_env_runner"] == games
    assert settings["rollout_fragment_length"] == 100
    assert config.total_train_batch_size == 10_000
    assert settings["minibatch_size"] == 500
    assert (settings["env"], settings["env_config"]) == (RunnerPool, {"red": "B_lineAgent"})


def test_runners_share_processors_and_leave_one_to_the_learner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ray.is_initialized", lambda: True)
    monkeypatch.setattr("ray.cluster_resources", lambda: {"CPU": 4.0})

    shares = {n: ppo_config(n, 1).num_cpus_per_env_runner for n in (0, 2, 3, 7, 100)}

    assert shares == {0: 1, 2: 1, 3: 1, 7: 0.4285, 100: 0.03}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"n_env_runners": -1}, "n_env_runners must be at least 0, got -1"),
        ({"n_envs": 0}, "n_envs must be at least 1, got 0"),
        ({"fragment": 0}, "fragment must be at least 1, got 0"),
        ({"red": "nobody"}, "red must be one of .* got 'nobody'"),
        ({"red": "given"}, "red must be one that plays by itself, got 'given'"),
        ({"observation_dtype": "uint8"}, "observation_dtype must be float32, .* got uint8"),
        ({"n_envs": 2, "max_steps": [5]}, "max_steps"),
    ],
)
def test_a_wrong_setting_is_refused_at_once(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        ppo_config(**settings)

"""Settings of a run: what is refused, and in which words."""

from typing import Any

import pytest

from cagepool.envs.learning import learning_vec
from cagepool.train.config import TrainConfig, from_dict
from cagepool.train.presets import PRESETS, preset

NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"red_agent": "nobody"}, "B_lineAgent, RedMeanderAgent, SleepAgent.*got 'nobody'"),
        ({"red_agent": "b_line+nobody"}, r"or mix; got 'b_line\+nobody'"),
        ({"red_agent": "given"}, "red_agent must be one of B_lineAgent, RedMeanderAgent"),
        ({"edition": "3"}, "edition must be one of 2.1, leaderboard; got '3'"),
        ({"backend": "dask"}, "backend must be one of auto, native, .*; got 'dask'"),
        ({"actions": "few"}, "actions must be one of all, possible, reduced, core; got 'few'"),
        ({"activation": "sin"}, "activation must be one of tanh, relu; got 'sin'"),
        ({"knowledge": "none"}, "knowledge must be one of true, observed; got 'none'"),
        ({"definition": "old"}, "definition must be one of host, seed; got 'old'"),
        ({"order": "user>defender"}, "an order must be one of .*missing 'enterprise'"),
        ({"order_input": True}, "order_input needs an order"),
        ({"order": "reverse", "backend": "sync"}, "an order needs .* got .* with sync"),
        ({"order": "reverse", "env": "CartPole-v1"}, "an order needs .* got CartPole-v1"),
        ({"n_envs": 0}, "n_envs must be at least 1, got 0"),
        ({"total_episodes": 0}, "total_episodes must be at least 1"),
        ({"update_steps": -1}, "update_steps must be at least 1"),
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"minibatches": 0}, "minibatches must be at least 1"),
        ({"check_episodes": 0}, "check_episodes must be at least 1"),
        ({"threads": 0}, "threads must be at least 1"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"checks": -1}, "checks must be at least 0"),
        ({"checkpoint_seconds": NAN}, "checkpoint_seconds must be at least 0, got nan"),
        ({"max_steps": 0}, "max_steps must be from 1 to 65535, got 0"),
        ({"max_steps": 70000}, "max_steps must be from 1 to 65535"),
        ({"hidden": ()}, "hidden must be widths of at least 1"),
        ({"hidden": (64, 0)}, "hidden must be widths of at least 1"),
        ({"gamma": 1.5}, "gamma must be from 0 to 1, got 1.5"),
        ({"gae_lambda": -0.1}, "gae_lambda must be from 0 to 1"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
        ({"learning_rate": NAN}, "learning_rate must be above 0, got nan"),
        ({"clip": INFINITE}, "clip must be above 0, got inf"),
        ({"max_gradient_norm": 0.0}, "max_gradient_norm must be above 0"),
        ({"reward_scale": -1.0}, "reward_scale must be above 0"),
        ({"learning_rate_end": -1.0}, "learning_rate_end must be at least 0"),
        ({"value_clip": -0.1}, "value_clip must be at least 0"),
        ({"entropy": -0.1}, "entropy must be at least 0"),
        ({"entropy_end": NAN}, "entropy_end must be at least 0"),
        ({"target_kl": -0.1}, "target_kl must be at least 0"),
        ({"alignment_lambda": -1.0}, "alignment_lambda must be at least 0"),
        ({"n_envs": 2.0}, "n_envs must be of type int, got 2.0"),
        ({"n_envs": True}, "n_envs must be of type int, got True"),
        ({"n_envs": "2"}, "n_envs must be of type int, got '2'"),
        ({"green": 1}, "green must be of type bool, got 1"),
        ({"gamma": "high"}, "gamma must be of type float, got 'high'"),
        ({"order": 3}, "order must be of type str or null, got 3"),
        ({"env": None}, "env must be of type str, got None"),
        ({"hidden": 64}, "hidden must be a list of whole numbers, got 64"),
        ({"hidden": ["64"]}, "hidden must be a list of whole numbers"),
        ({"learning_rat": 0.1, "x": 1}, "settings must be among .*; got learning_rat, x"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_wrong_setting_is_refused_with_what_would_be_right(
    settings: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence) as refusal:
        from_dict(settings)

    assert "\n" not in str(refusal.value)


def test_settings_survive_being_written_down() -> None:
    config = TrainConfig(hidden=(8, 4), red_agent="b_line+sleep", gamma=1, order="reverse")

    assert from_dict(config.as_dict()) == config
    assert from_dict({"gamma": 1}).gamma == 1.0
    assert from_dict({}) == TrainConfig()


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_be_trained(name: str) -> None:
    assert from_dict(preset(name)) != TrainConfig()


def test_an_unknown_preset_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=f"preset must be one of {', '.join(PRESETS)}; got 'x'"):
        preset("x")


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        ("Nothing-v0", "an id that Gymnasium knows, or module:function; got 'Nothing-v0'"),
        ("no_such_module:make", "got 'no_such_module:make'"),
        ("tests.train.scripted:Missing", "got 'tests.train.scripted:Missing'"),
        ("tests.no_such_module:make", "module of env can't be imported: .*no_such_module"),
        ("tests.train.scripted:Shifted", r"Discrete and begin at 0, .* has Discrete\(3, start=1\)"),
        ("tests.train.scripted:Steered", r"Discrete and begin at 0, .* has Box\("),
        (":make", "got ':make'"),
    ],
)
def test_an_environment_that_cannot_be_learned_is_refused(env: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        learning_vec(2, env, "sync", {})


def test_other_environments_do_not_run_natively() -> None:
    with pytest.raises(ValueError, match="plays CAGE-2 only"):
        learning_vec(2, "CartPole-v1", "native", {})

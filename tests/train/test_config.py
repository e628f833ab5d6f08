"""Configuration of a training: checks, presets and conversion from and to JSON."""

from typing import Any

import pytest

from cagepool.envs.make import make_training_vec
from cagepool.sim.settings import SharedSettings
from cagepool.train.config import TrainConfig
from cagepool.train.presets import PRESETS, preset_settings

NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"env": {"red_agent": "nobody"}},
            "B_lineAgent, RedMeanderAgent, SleepAgent.*got 'nobody'",
        ),
        ({"env": {"red_agent": "b_line+nobody"}}, r"or mix; got 'b_line\+nobody'"),
        (
            {"env": {"red_agent": "given"}},
            "env.red_agent must be one of B_lineAgent, RedMeanderAgent",
        ),
        ({"env": {"red_agent": "b_line:0.5+meander"}}, "a weight of red .* got 'meander'"),
        ({"env": {"red_agent": "b_line:1+meander:-1"}}, "a weight of red .* got 'meander:-1'"),
        ({"env": {"red_agent": "b_line:1+b_line:2"}}, "name an agent once if it has weights"),
        ({"env": {"red_agent": "b_line:1+sleep:1e-9"}}, "at least 1/65536 of their sum"),
        ({"env": {"red_agent": "mix:0.5"}}, "env.red_agent must be one of .*got 'mix:0.5'"),
        (
            {"env": {"red_agent": "b_line:1+sleep:1", "id": "cyborg"}},
            "env.red_agent with weights needs cagepool/CAGE2-v0, got cyborg",
        ),
        ({"env": {"lengths": "30,x"}}, "env.lengths must be whole numbers .*got '30,x'"),
        ({"env": {"lengths": "30,0"}}, "env.lengths must be whole numbers .*got '30,0'"),
        (
            {"env": {"lengths": "30,50"}},
            "env.max_steps must be at most the longest of env.lengths, 50",
        ),
        (
            {"env": {"lengths": "100", "id": "CartPole-v1"}},
            "env.lengths needs CAGE-2, got CartPole-v1 with auto",
        ),
        ({"ppo": {"start_bias": "Restore"}}, "start_bias must be numbers by kind .*got 'Restore'"),
        ({"ppo": {"start_bias": "Reboot=1"}}, "start_bias must be numbers by kind .*'Reboot=1'"),
        (
            {"ppo": {"start_bias": "Sleep=1"}, "env": {"id": "CartPole-v1"}},
            "ppo.start_bias needs CAGE-2, got CartPole-v1 with auto",
        ),
        ({"env": {"edition": "3"}}, "env.edition must be one of 2.1, leaderboard; got '3'"),
        ({"env": {"backend": "dask"}}, "env.backend must be one of auto, native, .*; got 'dask'"),
        (
            {"features": {"actions": "few"}},
            "features.actions must be one of all, possible, reduced, core, lean; got 'few'",
        ),
        ({"ppo": {"activation": "sin"}}, "ppo.activation must be one of tanh, relu; got 'sin'"),
        (
            {"order": {"knowledge": "none"}},
            "order.knowledge must be one of true, observed; got 'none'",
        ),
        (
            {"order": {"definition": "old"}},
            "order.definition must be one of host, fix-type; got 'old'",
        ),
        ({"order": {"order": "user>defender"}}, "an order must be one of .*missing 'enterprise'"),
        ({"features": {"order_input": True}}, "features.order_input needs an order"),
        (
            {"order": {"order": "reverse"}, "env": {"backend": "sync"}},
            "an order needs .* got .* with sync",
        ),
        (
            {"order": {"order": "reverse"}, "env": {"id": "CartPole-v1"}},
            "an order needs .* got CartPole-v1",
        ),
        ({"env": {"n_envs": 0}}, "env.n_envs must be at least 1, got 0"),
        ({"run": {"total_episodes": 0}}, "run.total_episodes must be at least 1"),
        ({"ppo": {"update_steps": -1}}, "ppo.update_steps must be at least 1"),
        ({"ppo": {"n_epochs": 0}}, "ppo.n_epochs must be at least 1"),
        ({"ppo": {"n_minibatches": 0}}, "ppo.n_minibatches must be at least 1"),
        ({"run": {"n_eval_episodes": 0}}, "run.n_eval_episodes must be at least 1"),
        ({"ppo": {"threads": 0}}, "ppo.threads must be at least 1"),
        ({"run": {"seed": -1}}, "run.seed must be at least 0"),
        ({"run": {"n_evals": -1}}, "run.n_evals must be at least 0"),
        (
            {"run": {"checkpoint_seconds": NAN}},
            "run.checkpoint_seconds must be at least 0, got nan",
        ),
        ({"env": {"max_steps": 0}}, "env.max_steps must be from 1 to 65535, got 0"),
        ({"env": {"max_steps": 70000}}, "env.max_steps must be from 1 to 65535"),
        ({"ppo": {"hidden": ()}}, "ppo.hidden must be widths of at least 1"),
        ({"ppo": {"hidden": (64, 0)}}, "ppo.hidden must be widths of at least 1"),
        ({"ppo": {"gamma": 1.5}}, "ppo.gamma must be from 0 to 1, got 1.5"),
        ({"ppo": {"gae_lambda": -0.1}}, "ppo.gae_lambda must be from 0 to 1"),
        ({"ppo": {"learning_rate": 0.0}}, "ppo.learning_rate must be above 0"),
        ({"ppo": {"learning_rate": NAN}}, "ppo.learning_rate must be above 0, got nan"),
        ({"ppo": {"clip_range": INFINITY}}, "ppo.clip_range must be above 0, got inf"),
        ({"ppo": {"max_grad_norm": 0.0}}, "ppo.max_grad_norm must be above 0"),
        ({"ppo": {"reward_scale": -1.0}}, "ppo.reward_scale must be above 0"),
        ({"ppo": {"learning_rate_end": -1.0}}, "ppo.learning_rate_end must be at least 0"),
        ({"ppo": {"clip_range_vf": -0.1}}, "ppo.clip_range_vf must be at least 0"),
        ({"ppo": {"ent_coef": -0.1}}, "ppo.ent_coef must be at least 0"),
        ({"ppo": {"ent_coef_end": NAN}}, "ppo.ent_coef_end must be at least 0"),
        ({"ppo": {"target_kl": -0.1}}, "ppo.target_kl must be at least 0"),
        ({"order": {"alignment_lambda": -1.0}}, "order.alignment_lambda must be at least 0"),
        ({"env": {"n_envs": 2.0}}, "env.n_envs must be of type int, got 2.0"),
        ({"env": {"n_envs": True}}, "env.n_envs must be of type int, got True"),
        ({"env": {"n_envs": "2"}}, "env.n_envs must be of type int, got '2'"),
        ({"env": {"green": 1}}, "env.green must be of type bool, got 1"),
        ({"ppo": {"gamma": "high"}}, "ppo.gamma must be of type float, got 'high'"),
        ({"order": {"order": 3}}, "order.order must be of type str or null, got 3"),
        ({"env": {"id": None}}, "env.id must be of type str, got None"),
        ({"ppo": {"hidden": 64}}, "ppo.hidden must be a list of whole numbers, got 64"),
        ({"ppo": {"hidden": ["64"]}}, "ppo.hidden must be a list of whole numbers"),
        (
            {"ppo": {"learning_rat": 0.1, "x": 1}},
            r"settings of ppo must be among .*; got learning_rat, x, did you mean learning_rate\?",
        ),
        (
            {"learning_rate": 0.1},
            "groups of settings must be among env, ppo, .*; got learning_rate",
        ),
        ({"run": 3}, "run must be a table of settings, got 3"),
        ({"env": {"n_envs": 4, "num_envs": 4}}, "n_envs must be given once, got n_envs and num"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_an_invalid_setting_is_refused_with_the_valid_values(
    settings: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence) as refusal:
        TrainConfig.from_dict(settings)

    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("setting", ["network", "reward", "env", "scenario"])
@pytest.mark.parametrize(("code", "kind"), [(TrainConfig, "class"), (preset_settings, "function")])
def test_code_is_given_by_name(setting: str, code: Any, kind: str) -> None:
    sentence = f"must be a name such as my_module:{code.__name__}, .*; got the {kind} itself"
    with pytest.raises(ValueError, match=sentence):
        TrainConfig.from_flat(**{setting: code})


def test_settings_are_equal_after_conversion_to_json_values_and_back() -> None:
    config = TrainConfig.from_flat(
        hidden=(8, 4), red_agent="b_line+sleep", gamma=1, order="reverse"
    )

    assert TrainConfig.from_dict(config.as_dict()) == config
    assert TrainConfig.from_dict({"ppo": {"gamma": 1}}).ppo.gamma == 1.0
    assert TrainConfig.from_dict({}) == TrainConfig()


def test_settings_have_the_names_of_make_vec_too() -> None:
    assert TrainConfig.from_flat(num_envs=4, red="b_line").env.n_envs == 4
    assert TrainConfig.from_dict({"env": {"num_envs": 4}}).env.n_envs == 4


def test_the_games_of_a_training_have_its_settings() -> None:
    config = TrainConfig.from_flat(red_agent="meander", edition="leaderboard", max_steps=30)

    assert config.game == SharedSettings(
        red="meander", edition="leaderboard", max_steps=30, scenario_per="episode"
    )
    order = TrainConfig.from_flat(order="reverse", definition="fix-type").game
    assert (order.order, order.alignment, order.definition) == ("reverse", 30.0, "fix-type")


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_be_trained(name: str) -> None:
    assert TrainConfig.from_dict(preset_settings(name)) != TrainConfig()


def test_an_unknown_preset_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=f"preset must be one of {', '.join(PRESETS)}; got 'x'"):
        preset_settings("x")


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        ("Nothing-v0", "an id that Gymnasium knows, or module:function; got 'Nothing-v0'"),
        ("no_such_module:make", "env names the module 'no_such_module', which does not exist"),
        ("no_such_module:Env-v0", "env names the module 'no_such_module', which does not exist"),
        ("tests.no_such_module:make", "module 'tests.no_such_module', which does not exist"),
        ("tests.train.toy_envs:Shifte", "'Shifte', which .* does not have, did you mean Shifted?"),
        ("tests.train.toy_envs:np", "env must name a function, .* is a module"),
        ("tests.train.toy_envs:Shifted", r"Discrete and begin at 0, .* has Discrete\(3, start=1\)"),
        ("tests.train.toy_envs:Steered", r"Discrete and begin at 0, .* has Box\("),
        (":make", "got ':make'"),
    ],
)
def test_an_environment_that_cannot_be_trained_is_refused(env: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make_training_vec(2, env, "sync", SharedSettings())


def test_the_native_backend_is_refused_for_other_environments() -> None:
    with pytest.raises(ValueError, match="plays CAGE-2 only"):
        make_training_vec(2, "CartPole-v1", "native", SharedSettings())

"""Presets: named settings of a training run, for `--preset`."""

from collections.abc import Mapping

from cagepool.train.config import Settings, merge_settings

# The return is the official score: no discount, and every reward counts once per length that is
# still running. The belief is a sufficient statistic of what blue has seen, so that the observation
# and its history add nothing; SleepAgent needs few games.
_SCORE: Settings = {
    "env": {
        "n_envs": 400,
        "lengths": "30,50,100",
        "red_agent": "b_line:0.48+meander:0.48+sleep:0.04",
    },
    "ppo": {"n_minibatches": 8, "gamma": 1.0, "start_bias": "Restore=-2"},
    "features": {
        "belief": True,
        "clock": True,
        "hosts_restored": True,
        "observation": False,
        "scan_memory": False,
        "last_action": False,
        "time_left": False,
        "actions": "lean",
        "critic_inputs": "true",
    },
}

# The same objective for scenarios of any size, which have no belief.
_SCENARIOS: Settings = {
    "env": {
        "n_envs": 256,
        "lengths": "30,50,100",
        "red_agent": "b_line:0.48+meander:0.48+sleep:0.04",
    },
    "ppo": {
        "network": "entity",
        "hidden": [48, 48],
        "critic_hidden": [32, 32],
        "activation": "relu",
        "n_epochs": 2,
        "n_minibatches": 16,
        "gamma": 1.0,
        "start_bias": "Restore=-2",
    },
    "features": {"clock": True, "hosts_restored": True},
    "run": {"total_episodes": 150_000},
}

PRESETS: Mapping[str, Settings] = {
    "minutes": merge_settings(_SCORE, {"run": {"total_episodes": 100_000}}),
    "best": merge_settings(
        _SCORE,
        {
            "env": {"n_envs": 800},
            "ppo": {"n_minibatches": 16, "hidden": [128, 64]},
            "run": {"total_episodes": 400_000, "n_evals": 40, "n_eval_episodes": 2000},
        },
    ),
    "scenarios": _SCENARIOS,
}


def preset_settings(name: str) -> Settings:
    """Settings of a preset; docs/training.md has its scores.

    Raises:
        ValueError: no preset has that name.
    """
    if name not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}; got {name!r}")
    return PRESETS[name]

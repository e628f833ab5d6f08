"""Settings in config.json: nested by group (format 2), converted from flat ones (format 1)."""

from collections.abc import Mapping
from typing import Any

# Format 1 had no groups. Group and name in format 2, by the name in format 1.
_GROUPS = {
    "env": (
        "backend", "ray_actors", "n_envs", "max_steps", "red_agent", "edition", "green",
    ),
    "ppo": (
        "update_steps", "learning_rate", "learning_rate_end", "gamma", "gae_lambda", "target_kl",
        "bootstrap", "reward_scale", "hidden", "activation", "threads", "overlap",
    ),
    "features": (
        "scan_memory", "decoys_placed", "last_action", "time_left", "order_input",
        "action_masking", "actions",
    ),
    "order": (
        "order", "alignment_lambda", "knowledge", "definition", "universal",
        "compliance_threshold", "min_decisions", "patience",
    ),
    "run": ("total_episodes", "seed", "start_from", "checkpoint_seconds"),
    "search": ("method", "max_episodes_per_order", "gp_beta", "inherit"),
}  # fmt: skip
_RENAMED = {
    "env": ("env", "id"),
    "clip": ("ppo", "clip_range"),
    "value_clip": ("ppo", "clip_range_vf"),
    "entropy": ("ppo", "ent_coef"),
    "entropy_end": ("ppo", "ent_coef_end"),
    "epochs": ("ppo", "n_epochs"),
    "minibatches": ("ppo", "n_minibatches"),
    "max_gradient_norm": ("ppo", "max_grad_norm"),
    "normalise_advantages": ("ppo", "normalize_advantage"),
    "gate": ("order", "early_stopping"),
    "appraisal_episodes": ("order", "n_eval_episodes"),
    "checks": ("run", "n_evals"),
    "check_episodes": ("run", "n_eval_episodes"),
}
_PLACES = {name: (group, name) for group, names in _GROUPS.items() for name in names} | _RENAMED


def nested_settings(flat: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Convert the settings of format 1 to those of format 2.

    Raises:
        ValueError: a setting is unknown.
    """
    unknown = [name for name in flat if name not in _PLACES]
    if unknown:
        raise ValueError(
            f"settings must be among {', '.join(sorted(_PLACES))}; got {', '.join(unknown)}"
        )
    nested: dict[str, dict[str, Any]] = {}
    for name, value in flat.items():
        group, setting = _PLACES[name]
        nested.setdefault(group, {})[setting] = value
    return nested


def flat_settings(settings: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Settings by their full names, such as `env.n_envs`."""
    return {
        f"{group}.{name}": value
        for group, values in settings.items()
        for name, value in values.items()
    }

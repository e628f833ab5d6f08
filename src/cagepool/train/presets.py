"""Settings that go together, by name; docs/training.md tells what each one reaches."""

from typing import Any

# Many games a step steady the gradient, and a value that ends with the game, as the score does,
# lets the policy stop paying for what only later steps would gain.
_RECIPE: dict[str, Any] = {
    "n_envs": 400,
    "minibatches": 8,
    "gamma": 0.995,
    "bootstrap": False,
}

PRESETS: dict[str, dict[str, Any]] = {
    "minutes": {**_RECIPE, "total_episodes": 120_000},
    "best": {
        **_RECIPE,
        "n_envs": 800,
        "minibatches": 16,
        "total_episodes": 300_000,
        "checks": 40,
        "check_episodes": 2000,
    },
}


def preset(name: str) -> dict[str, Any]:
    """The settings of a preset.

    Raises:
        ValueError: there is no such preset.
    """
    if name not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}; got {name!r}")
    return PRESETS[name]

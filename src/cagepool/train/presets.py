"""Settings that go together, by name."""

from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    "quick": {"total_episodes": 20_000},
}


def preset(name: str) -> dict[str, Any]:
    """The settings of a preset.

    Raises:
        ValueError: there is no such preset.
    """
    if name not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}; got {name!r}")
    return PRESETS[name]

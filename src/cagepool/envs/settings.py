"""Settings of environments: names, types and defaults; `make_vec` documents each."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from numpy.typing import DTypeLike

from cagepool._lookup import suggestion
from cagepool.envs.reward_hook import RewardFunction
from cagepool.envs.workers.pool import WorkerSettings
from cagepool.scenarios import resolve_scenarios
from cagepool.sim.batch import BatchConfig
from cagepool.sim.graph import GraphSize
from cagepool.sim.settings import GameKeywords

RenderMode: TypeAlias = Literal["ansi", "rgb_array"]
ObservationForm: TypeAlias = Literal["flat", "graph"]

ALIASES = {"red_agent": "red", "red_agent_type": "red", "max_episode_steps": "max_steps"}
"""Names that the command line, older documents and Gymnasium have for our settings."""


@dataclass(frozen=True, kw_only=True)
class EnvSettings(BatchConfig):
    """Settings of native environments: of the games, and of what is added to their steps."""

    observation: ObservationForm = "flat"
    graph_size: GraphSize | None = None
    action_mask: bool = False
    reward: RewardFunction | str | None = None
    reward_weights: Mapping[str, float] | None = None
    reward_parts: bool = False
    moves: bool = False
    render_mode: RenderMode | None = None

    def __post_init__(self) -> None:
        """Check the settings that do not depend on the number of games."""
        super().__post_init__()
        if self.observation not in ("flat", "graph"):
            raise ValueError(f"observation must be 'flat' or 'graph', got {self.observation!r}")
        if self.render_mode not in (None, "ansi", "rgb_array"):
            raise ValueError(
                f"render_mode must be 'ansi', 'rgb_array' or None, got {self.render_mode!r}"
            )


class EnvKeywords(GameKeywords, total=False):
    """Settings of one environment as keywords of a function."""

    observation_dtype: DTypeLike
    observation: ObservationForm
    graph_size: GraphSize | None
    action_mask: bool
    reward: RewardFunction | str | None
    reward_weights: Mapping[str, float] | None
    reward_parts: bool
    moves: bool
    render_mode: RenderMode | None


class NativeKeywords(EnvKeywords, total=False):
    """Settings of a batch of native games as keywords of a function."""

    threads: int


class VecKeywords(NativeKeywords, WorkerSettings, total=False):
    """Settings of vector environments as keywords of a function; some are for some backends."""

    statistics: bool | None


ENV_SETTINGS = tuple(EnvKeywords.__annotations__)
VEC_SETTINGS = tuple(VecKeywords.__annotations__)


def read_settings(settings: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """The settings under our names, with scenarios in place of what names them.

    Raises:
        TypeError: a setting is unknown, or was given under two names.
        ValueError: there are no such scenarios.
    """
    keywords = rename_aliases(settings)
    for name in keywords:
        if name not in known:
            nearest = suggestion(name, [*known, *ALIASES]) or ","
            raise TypeError(f"unknown setting {name}{nearest} the settings are {', '.join(known)}")
    if keywords.get("scenario") is not None:
        keywords["scenario"] = resolve_scenarios(keywords["scenario"])
    return keywords


def rename_aliases(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings under our names; a red agent may be the class that CybORG has for it."""
    renamed: dict[str, Any] = {}
    for given, value in settings.items():
        name = ALIASES.get(given, given)
        if name in renamed:
            names = [other for other in settings if ALIASES.get(other, other) == name]
            raise TypeError(f"{name} must be given once, got {' and '.join(names)}")
        renamed[name] = value.__name__ if name == "red" and isinstance(value, type) else value
    return renamed


def env_count(num_envs: int | None, n_envs: int | None) -> int:
    """Number of environments, as Gymnasium or as Stable-Baselines3 names it."""
    if num_envs is not None and n_envs is not None:
        raise TypeError("num_envs must be given once, got num_envs and n_envs")
    count = n_envs if num_envs is None else num_envs
    if count is None:
        raise TypeError("num_envs, the number of environments, must be given, got none")
    return count

"""Environment functions (`env_fns`), which make one environment each, and their lookup by name."""

import signal
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from multiprocessing import parent_process
from typing import Any, TypeAlias, cast

import gymnasium as gym
import numpy as np

from cagepool._lookup import is_reference, load_module, load_object
from cagepool.envs.cage2_env import Cage2Env, resolve_settings
from cagepool.envs.registration import ENVIRONMENT_ID
from cagepool.scenarios import Layout, Scenario
from cagepool.sim.graph import graph_size

AnyEnv: TypeAlias = gym.Env[Any, Any]
EnvFn: TypeAlias = Callable[[], AnyEnv]
EnvSource: TypeAlias = str | EnvFn | Sequence[EnvFn] | None

_PER_GAME_SETTINGS = ("red", "edition", "max_steps", "green", "order")


def is_cage2(env: EnvSource) -> bool:
    """Whether `env` stands for our CAGE-2 environment."""
    return env is None or env == ENVIRONMENT_ID


def make_env_fns(num_envs: int, env: EnvSource, settings: Mapping[str, Any]) -> list[EnvFn]:
    """One function per environment.

    Args:
        num_envs: Number of environments.
        env: A function, a list of functions, an id that is registered with Gymnasium, or None for
            CAGE-2.
        settings: Keywords of `Cage2Env`, or of `gym.make` for an id; none with functions.

    Raises:
        TypeError: settings were given with functions, or an environment instead of a function.
        ValueError: the number of functions is not `num_envs`.
    """
    if num_envs < 1:
        raise ValueError(f"there must be at least 1 environment, got {num_envs}")
    if env is None or is_cage2(env):
        keywords = resolve_settings(settings)
        return [partial(Cage2Env, **_settings_of(keywords, i, num_envs)) for i in range(num_envs)]
    if isinstance(env, str):
        return [partial(gym.make, env, **settings)] * num_envs
    if settings:
        raise TypeError(
            f"settings of the game must not be given with a function, got {', '.join(settings)}"
        )
    for given in env if isinstance(env, Sequence) else [env]:
        if not callable(given):
            raise TypeError(_not_a_function(given))
    if callable(env):
        return [env] * num_envs
    if len(env) != num_envs:
        raise ValueError(f"there must be {num_envs} functions, got {len(env)}")
    return list(env)


def _not_a_function(env: object) -> str:
    got = repr(env)
    if isinstance(env, gym.Env):
        name = type(env).__name__
        got = f"an environment; pass {name} or lambda: {name}(...) instead of {name}()"
    return f"env must be a function that makes an environment, or an id; got {got}"


def _settings_of(settings: Mapping[str, Any], game: int, num_envs: int) -> dict[str, Any]:
    """Settings of one game, where some have one value per game."""
    chosen = dict(settings)
    for name in chosen.keys() & _PER_GAME_SETTINGS:
        values = chosen[name]
        if isinstance(values, Sequence | np.ndarray) and not isinstance(values, str):
            if len(values) != num_envs:
                raise ValueError(
                    f"{name} must be one value or one per game, "
                    f"got {len(values)} for {num_envs} games"
                )
            chosen[name] = values[game]
    scenarios = chosen.get("scenario")
    if scenarios is not None and len(scenarios) > 1:
        _set_scenario(chosen, scenarios, game)
    return chosen


def _set_scenario(chosen: dict[str, Any], scenarios: tuple[Scenario, ...], game: int) -> None:
    """Choose the scenario of one of several environments, in the spaces of all."""
    if chosen.get("layout") is None:
        chosen["layout"] = _common_layout(scenarios)
    if chosen.get("observation") == "graph" and chosen.get("graph_size") is None:
        chosen["graph_size"] = _common_size(scenarios, chosen["layout"])
    if chosen.get("scenario_per", "env") == "env":
        chosen["scenario"] = (scenarios[game % len(scenarios)],)


_common_layout = lru_cache(maxsize=4)(Layout.of)
_common_size = lru_cache(maxsize=4)(graph_size)


def find_env_fn(env: str) -> EnvFn:
    """The function that `module:function` names, or `gym.make` with an id.

    As in Gymnasium, `module:id` names an id that importing the module registers.

    Raises:
        ValueError: there is no such environment.
    """
    module, colon, name = env.partition(":")
    if colon and module:
        load_module(module, "env")
    if is_reference(env) and name not in gym.registry:
        found = load_object(env, "env")
        if not callable(found):
            raise ValueError(f"env must name a function, {env!r} is a {type(found).__name__}")
        return cast("EnvFn", found)
    try:
        gym.spec(name or env)
    except (gym.error.Error, ImportError, ValueError) as error:
        raise ValueError(
            f"env must be an id that Gymnasium knows, or module:function; got {env!r} ({error})"
        ) from error
    return partial(gym.make, env)


def ignore_sigint(env_fn: EnvFn) -> EnvFn:
    """Make the processes of Gymnasium's AsyncVectorEnv ignore Ctrl-C.

    The parent process closes them when it has handled the signal.
    """
    return partial(_make_without_sigint, env_fn)


def _make_without_sigint(env_fn: EnvFn) -> AnyEnv:
    if parent_process() is not None:  # AsyncVectorEnv makes one env in the parent to read spaces
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return env_fn()

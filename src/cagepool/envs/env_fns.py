"""Functions that make single environments, from whatever the caller names."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np

from cagepool.envs.cage2_env import Cage2Env
from cagepool.envs.registration import ENVIRONMENT_ID

AnyEnv: TypeAlias = gym.Env[Any, Any]
Maker: TypeAlias = Callable[[], AnyEnv]
Source: TypeAlias = str | Maker | Sequence[Maker] | None

# Settings that may have one value a game.
_PER_GAME = ("red", "edition", "max_steps", "green", "order")


def is_ours(env: Source) -> bool:
    """Whether what is to be made is CAGE-2."""
    return env is None or env == ENVIRONMENT_ID


def makers_for(num_envs: int, env: Source, settings: Mapping[str, Any]) -> list[Maker]:
    """One function an environment.

    Args:
        num_envs: How many.
        env: A function, one for each, or a name that Gymnasium knows; none: CAGE-2.
        settings: What CAGE-2 takes; others are made as they are.

    Raises:
        TypeError: settings were given for an environment that does not take them.
        ValueError: there is not one function an environment.
    """
    if num_envs < 1:
        raise ValueError(f"there must be at least 1 environment, got {num_envs}")
    if env is None or is_ours(env):
        return [partial(Cage2Env, **_of_game(settings, game, num_envs)) for game in range(num_envs)]
    if isinstance(env, str):
        return [partial(gym.make, env, **settings)] * num_envs
    if settings:
        raise TypeError(
            f"settings of the game must not be given with a function, got {', '.join(settings)}"
        )
    if callable(env):
        return [env] * num_envs
    if len(env) != num_envs:
        raise ValueError(f"there must be {num_envs} functions, got {len(env)}")
    return list(env)


def _of_game(settings: Mapping[str, Any], game: int, num_envs: int) -> dict[str, Any]:
    """The settings of one game where some are given for each."""
    own = dict(settings)
    for name in own.keys() & _PER_GAME:
        value = own[name]
        if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
            if len(value) != num_envs:
                raise ValueError(
                    f"{name} must be one value or one per game, "
                    f"got {len(value)} for {num_envs} games"
                )
            own[name] = value[game]
    return own

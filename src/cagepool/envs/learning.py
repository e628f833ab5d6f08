"""Vector environments as a learner wants them: flat observations, a choice of actions."""

import signal
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import parent_process
from typing import Any, cast

import gymnasium as gym
from gymnasium.wrappers import FlattenObservation

from cagepool.cyborg import CybORGEnv
from cagepool.envs.env_fns import AnyEnv, is_ours
from cagepool.envs.make import AnyVectorEnv, Backend, make_vec
from cagepool.sim.names import red_class_names

CYBORG = "cyborg"


def learning_vec(num_envs: int, env: str, backend: str, game: dict[str, Any]) -> AnyVectorEnv:
    """Environments that reset themselves in the step in which they end, and copy nothing.

    Args:
        num_envs: How many.
        env: `cagepool/CAGE2-v0`, `cyborg`, an id that Gymnasium knows, or `module:function`.
        backend: See `make_vec`.
        game: Settings of CAGE-2, which other environments do not take.

    Raises:
        ValueError: there is no such environment, or its actions are not numbered from 0.
    """
    made = partial(make_vec, num_envs, backend=cast("Backend", backend), autoreset="same_step")
    if is_ours(env):
        quiet = {"statistics": False} if backend in ("auto", "native") else {}
        return cast("AnyVectorEnv", made(copy=False, **quiet, **game))
    if env == CYBORG:
        makers = [partial(CybORGEnv, **of_game) for of_game in _cyborg_games(num_envs, game)]
        carried = {name: game[name] for name in ("true_state",) if name in game}
        guarded = [_guarded(maker, backend) for maker in makers]
        return cast("AnyVectorEnv", made(env=guarded, **carried))
    envs = cast("AnyVectorEnv", made(env=_guarded(partial(_flat, named(env)), backend)))
    actions = envs.single_action_space
    if not isinstance(actions, gym.spaces.Discrete) or actions.start:
        envs.close()
        raise ValueError(
            f"the actions of an environment must be Discrete and begin at 0, {env} has {actions}"
        )
    return envs


def named(env: str) -> Callable[[], AnyEnv]:
    """A function that makes the environment of that name.

    Raises:
        ValueError: there is no such environment.
    """
    module, _, function = env.partition(":")
    if module and function and find_spec(module.split(".")[0]) is not None:
        found = getattr(_imported(module), function, None)
        if callable(found):
            return cast("Callable[[], AnyEnv]", found)
    try:
        gym.spec(env)
    except (gym.error.Error, ImportError, ValueError) as error:
        raise ValueError(
            f"env must be an id that Gymnasium knows, or module:function; got {env!r} ({error})"
        ) from error
    return partial(gym.make, env)


def _imported(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ValueError(f"the module of env can't be imported: {error}") from error


def _guarded(maker: Callable[[], AnyEnv], backend: str) -> Callable[[], AnyEnv]:
    """Keep Ctrl-C from Gymnasium's processes: they are asked to stop when the learner has."""
    return partial(_undisturbed, maker) if backend == "pipes" else maker


def _undisturbed(maker: Callable[[], AnyEnv]) -> AnyEnv:
    if parent_process() is not None:  # Gymnasium makes the first one here, to look at its spaces
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return maker()


def _flat(maker: Callable[[], AnyEnv]) -> AnyEnv:
    return FlattenObservation(maker())


def _cyborg_games(num_envs: int, game: dict[str, Any]) -> list[dict[str, Any]]:
    """Settings of each CybORG; a mix of reds is dealt out, since CybORG keeps its red for good."""
    members = red_class_names(game["red"])
    return [
        {
            "red": members[number % len(members)],
            "green": game["green"],
            "max_steps": game["max_steps"],
            "edition": game["edition"],
        }
        for number in range(num_envs)
    ]

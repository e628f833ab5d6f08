"""`make_vec`: makes vector environments on any backend."""

from collections.abc import Collection
from functools import partial
from multiprocessing import get_all_start_methods
from typing import Any, Literal, TypeAlias, Unpack, cast, overload

from gymnasium.spaces import Discrete
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import FlattenObservation

from cagepool.cyborg.env import CybORGEnv
from cagepool.envs.auto_backend import choose_backend
from cagepool.envs.cage2_env import RenderMode
from cagepool.envs.env_fns import (
    AnyEnv,
    EnvFn,
    EnvSource,
    find_env_fn,
    ignore_sigint,
    is_cage2,
    make_env_fns,
)
from cagepool.envs.native import NativeVectorEnv, VectorSettings
from cagepool.envs.vector_args import Autoreset, autoreset_name
from cagepool.envs.workers import WorkerVectorEnv
from cagepool.envs.workers.pool import WorkerSettings
from cagepool.sim.names import red_class_names

Backend: TypeAlias = Literal["auto", "native", "sync", "pipes", "workers"]
AnyVectorEnv: TypeAlias = VectorEnv[Any, Any, Any]

_BACKENDS = ("auto", "native", "sync", "pipes", "workers")
_NATIVE_ONLY = ("statistics", "threads")

CYBORG = "cyborg"
"""Name of the original simulator where a trainer takes the name of an environment."""


class MakeSettings(VectorSettings, WorkerSettings, total=False):
    """Keywords of `make_vec`; most are for some backends only."""

    statistics: bool
    render_mode: RenderMode | None


@overload
def make_vec(
    num_envs: int,
    *,
    env: None = None,
    backend: Literal["auto", "native"] = "auto",
    autoreset: Autoreset | AutoresetMode = "next_step",
    copy: bool = True,
    **settings: Unpack[MakeSettings],
) -> NativeVectorEnv: ...
@overload
def make_vec(
    num_envs: int,
    *,
    env: EnvSource = None,
    backend: Literal["workers"],
    autoreset: Autoreset | AutoresetMode = "next_step",
    copy: bool = True,
    **settings: Unpack[MakeSettings],
) -> WorkerVectorEnv: ...
@overload
def make_vec(
    num_envs: int,
    *,
    env: EnvSource = None,
    backend: Backend = "auto",
    autoreset: Autoreset | AutoresetMode = "next_step",
    copy: bool = True,
    **settings: Unpack[MakeSettings],
) -> AnyVectorEnv: ...
def make_vec(
    num_envs: int,
    *,
    env: EnvSource = None,
    backend: Backend = "auto",
    autoreset: Autoreset | AutoresetMode = "next_step",
    copy: bool = True,
    **settings: Unpack[MakeSettings],
) -> AnyVectorEnv:
    """Make many environments as one Gymnasium vector environment.

    Args:
        num_envs: Number of environments.
        env: A function that makes one environment, a list with one function per environment, or an
            id that is registered with Gymnasium; None for CAGE-2.
        backend: `native`: CAGE-2 in this process; `workers`: processes and shared memory; `sync`
            and `pipes`: Gymnasium's SyncVectorEnv and AsyncVectorEnv; `auto`: `native` for
            CAGE-2, `workers` if one of their settings is given, otherwise the backend that
            `envs.auto_backend` predicts to be fastest, for which one environment may be made and
            stepped.
        autoreset: When an environment whose episode ended starts the next one.
        copy: Whether the caller owns the arrays that `reset` and `step` return; if not, the next
            call overwrites them.
        settings: `render_mode`. For CAGE-2, the game, see `sim.BatchConfig`: `red`, `max_steps`,
            `edition`, `green`, `order`, `alignment`, `knowledge`, `definition`,
            `observation_dtype`. For `native`, `threads` and `statistics` (default True): whether
            infos hold return, length and seconds of the episodes that ended, as Gymnasium's
            RecordEpisodeStatistics gives them; that wrapper needs `statistics=False`. For
            `workers`, see `envs.workers.pool.PoolConfig`: `workers`, `timeout`, `on_fault`,
            `max_restarts` and `true_state`.

    Raises:
        TypeError: the backend does not take a setting.
        ValueError: a setting has an unknown value.
        RuntimeError: `workers` cannot run on this platform.
        EnvironmentFault: an environment in a worker cannot be made.
    """
    if backend not in _BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(_BACKENDS)}; got {backend!r}")
    keywords = cast("dict[str, Any]", settings)
    known_backend = _backend_without_trial(backend, env, keywords)
    _check_keywords(known_backend or "sync", keywords)
    if known_backend == "native":
        if not is_cage2(env):
            raise ValueError(f"backend 'native' plays CAGE-2 only, got env={env!r}")
        return NativeVectorEnv(
            num_envs, autoreset=autoreset, copy=copy, **{"statistics": True, **keywords}
        )
    pool_settings = split_worker_settings(keywords)
    env_fns = make_env_fns(num_envs, env, keywords)
    chosen_backend = known_backend or choose_backend(env_fns)
    if chosen_backend == "workers":
        return WorkerVectorEnv(env_fns, autoreset=autoreset, copy=copy, **pool_settings)
    mode = AutoresetMode[autoreset_name(autoreset).upper()]
    if chosen_backend == "sync":
        return SyncVectorEnv(env_fns, copy=copy, autoreset_mode=mode)
    # Threads of native games do not survive a fork of this process.
    context = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"
    return AsyncVectorEnv(env_fns, copy=copy, autoreset_mode=mode, context=context)


def split_worker_settings(keywords: dict[str, Any]) -> WorkerSettings:
    """Remove the settings of the backend `workers` from the keywords, and return them."""
    names = [name for name in WorkerSettings.__annotations__ if name in keywords]
    return cast("WorkerSettings", {name: keywords.pop(name) for name in names})


def _backend_without_trial(
    backend: Backend, env: EnvSource, keywords: Collection[str]
) -> Backend | None:
    """The backend, or None if `auto` has to predict the fastest."""
    if backend != "auto":
        return backend
    if is_cage2(env):
        return "native"
    return "workers" if WorkerSettings.__annotations__.keys() & keywords else None


def _check_keywords(backend: Backend, keywords: Collection[str]) -> None:
    """Raise TypeError for settings that the backend would ignore."""
    refused_by = {"native": tuple(WorkerSettings.__annotations__), "workers": _NATIVE_ONLY}
    refused = refused_by.get(backend, (*WorkerSettings.__annotations__, *_NATIVE_ONLY))
    wrong = [name for name in keywords if name in refused]
    if wrong:
        raise TypeError(f"backend '{backend}' does not take {', '.join(wrong)}")


def make_training_vec(num_envs: int, env: str, backend: str, game: dict[str, Any]) -> AnyVectorEnv:
    """Make vector environments for a trainer: autoreset same_step, flat observations, no copies.

    Args:
        num_envs: Number of environments.
        env: `cagepool/CAGE2-v0`, `cyborg`, an id that is registered with Gymnasium, or
            `module:function`.
        backend: See `make_vec`.
        game: Settings of CAGE-2, which other environments do not take.

    Raises:
        ValueError: there is no such environment, or its actions are not numbered from 0.
    """
    make = partial(make_vec, num_envs, backend=cast("Backend", backend), autoreset="same_step")
    if is_cage2(env):
        options = {"statistics": False} if backend in ("auto", "native") else {}
        return cast("AnyVectorEnv", make(copy=False, **options, **game))
    if env == CYBORG:
        env_fns: list[EnvFn] = [
            partial(CybORGEnv, **settings) for settings in _cyborg_settings(num_envs, game)
        ]
        options = {"true_state": game["true_state"]} if "true_state" in game else {}
    else:
        env_fns = [partial(_make_flat, find_env_fn(env))] * num_envs
        options = {}
    if backend == "pipes":
        env_fns = [ignore_sigint(env_fn) for env_fn in env_fns]
    envs = cast("AnyVectorEnv", make(env=env_fns, **options))
    actions = envs.single_action_space
    if not isinstance(actions, Discrete) or actions.start:
        envs.close()
        raise ValueError(
            f"the actions of an environment must be Discrete and begin at 0, {env} has {actions}"
        )
    return envs


def _make_flat(env_fn: EnvFn) -> AnyEnv:
    return FlattenObservation(env_fn())


def _cyborg_settings(num_envs: int, game: dict[str, Any]) -> list[dict[str, Any]]:
    """Settings per environment; the reds of a mix take turns, as CybORG cannot change its red."""
    reds = red_class_names(game["red"])
    shared = {name: game[name] for name in ("green", "max_steps", "edition")}
    return [{"red": reds[env % len(reds)], **shared} for env in range(num_envs)]

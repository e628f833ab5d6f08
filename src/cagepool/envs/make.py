"""The front door."""

from collections.abc import Collection
from typing import Any, Literal, TypeAlias, Unpack, cast, overload

from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from cagepool.envs.auto_backend import backend_for
from cagepool.envs.env_fns import Source, is_ours, makers_for
from cagepool.envs.native import NativeVectorEnv
from cagepool.envs.settings import Autoreset, RenderMode, VectorSettings, mode_name
from cagepool.envs.workers import WorkerVectorEnv
from cagepool.envs.workers.config import WorkerSettings

Backend: TypeAlias = Literal["auto", "native", "sync", "pipes", "workers"]
AnyVectorEnv: TypeAlias = VectorEnv[Any, Any, Any]

_BACKENDS = ("auto", "native", "sync", "pipes", "workers")
_NATIVE_ONLY = ("statistics", "threads")


class MakeSettings(VectorSettings, WorkerSettings, total=False):
    """Keywords that only some backends take."""

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
    env: Source = None,
    backend: Literal["workers"],
    autoreset: Autoreset | AutoresetMode = "next_step",
    copy: bool = True,
    **settings: Unpack[MakeSettings],
) -> WorkerVectorEnv: ...
@overload
def make_vec(
    num_envs: int,
    *,
    env: Source = None,
    backend: Backend = "auto",
    autoreset: Autoreset | AutoresetMode = "next_step",
    copy: bool = True,
    **settings: Unpack[MakeSettings],
) -> AnyVectorEnv: ...
def make_vec(
    num_envs: int,
    *,
    env: Source = None,
    backend: Backend = "auto",
    autoreset: Autoreset | AutoresetMode = "next_step",
    copy: bool = True,
    **settings: Unpack[MakeSettings],
) -> AnyVectorEnv:
    """Many environments as one Gymnasium vector environment.

    Args:
        num_envs: How many.
        env: A function that makes one, a list with a function for each, or a name that Gymnasium
            knows; none: CAGE-2.
        backend: `native`: CAGE-2 in this process; `workers`: processes and shared memory; `sync`
            and `pipes`: Gymnasium's SyncVectorEnv and AsyncVectorEnv; `auto`: `native` for
            CAGE-2, `workers` if a setting of theirs is given, and else whichever is expected to
            be fastest, see `envs.choice`; for that one environment is made and tried.
        autoreset: When an environment that is over starts anew.
        copy: Whether the caller owns what `reset` and `step` return; if not, the next call
            overwrites it.
        settings: `render_mode`. For CAGE-2, what is played, see `sim.BatchConfig`: `red`,
            `max_steps`, `edition`, `green`, `order`, `alignment`, `knowledge`, `definition`,
            `observation_dtype`. For `native`, `threads` and `statistics`, which is on by default:
            whether infos hold return, length and seconds of the episodes that ended, as
            Gymnasium's RecordEpisodeStatistics gives them; that wrapper needs it to be off. For
            `workers`, see `envs.workers.settings.PoolConfig`: `workers`, `timeout`, `on_fault`,
            `max_restarts` and `true_state`.

    Raises:
        TypeError: the backend does not take a setting.
        ValueError: a setting is not one that is known.
        EnvironmentFault: an environment in a worker cannot be made.
    """
    if backend not in _BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(_BACKENDS)}; got {backend!r}")
    given = cast("dict[str, Any]", settings)
    chosen = _settled(backend, env, given)
    _check_taken(chosen or "sync", given)
    if chosen == "native":
        if not is_ours(env):
            raise ValueError(f"backend 'native' plays CAGE-2 only, got env={env!r}")
        return NativeVectorEnv(
            num_envs, autoreset=autoreset, copy=copy, **{"statistics": True, **given}
        )
    pool = {name: given.pop(name) for name in WorkerSettings.__annotations__ if name in given}
    makers = makers_for(num_envs, env, given)
    chosen = chosen or backend_for(makers)
    if chosen == "workers":
        return WorkerVectorEnv(makers, autoreset=autoreset, copy=copy, **pool)
    mode = AutoresetMode[mode_name(autoreset).upper()]
    if chosen == "sync":
        return SyncVectorEnv(makers, copy=copy, autoreset_mode=mode)
    # Native threads do not survive a fork of this process.
    return AsyncVectorEnv(makers, copy=copy, autoreset_mode=mode, context="forkserver")


def _settled(backend: Backend, env: Source, settings: Collection[str]) -> Backend | None:
    """The backend, if it is known before an environment has been tried."""
    if backend != "auto":
        return backend
    if is_ours(env):
        return "native"
    return "workers" if WorkerSettings.__annotations__.keys() & settings else None


def _check_taken(backend: Backend, settings: dict[str, Any]) -> None:
    """Refuse settings that would be ignored."""
    foreign = {"native": tuple(WorkerSettings.__annotations__), "workers": _NATIVE_ONLY}
    refused = foreign.get(backend, (*WorkerSettings.__annotations__, *_NATIVE_ONLY))
    wrong = [name for name in settings if name in refused]
    if wrong:
        raise TypeError(f"backend '{backend}' does not take {', '.join(wrong)}")

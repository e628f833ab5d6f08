"""`make_vec` makes vector environments on any backend; `make` makes a single one."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from inspect import signature
from multiprocessing import get_all_start_methods
from typing import Any, Literal, TypeAlias, Unpack, cast, overload

from gymnasium.spaces import Discrete
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import FlattenObservation
from numpy.typing import DTypeLike

from cagepool.cyborg.env import CybORGEnv
from cagepool.envs.auto_backend import choose_backend
from cagepool.envs.cage2_env import Cage2Env, ObservationForm, RenderMode
from cagepool.envs.env_fns import (
    AnyEnv,
    EnvFn,
    EnvSource,
    find_env_fn,
    ignore_sigint,
    is_cage2,
    make_env_fns,
)
from cagepool.envs.native import NativeSettings, NativeVectorEnv
from cagepool.envs.reward_hook import RewardFunction
from cagepool.envs.vector_args import Autoreset, autoreset_name, check_names, rename_aliases
from cagepool.envs.workers import WorkerVectorEnv
from cagepool.envs.workers.pool import OnFault, PoolConfig, WorkerSettings
from cagepool.envs.workers.true_state import TrueStateMode
from cagepool.scenarios import Layout
from cagepool.scenarios.resolve import ScenarioLike
from cagepool.sim.batch import BatchConfig
from cagepool.sim.graph import GraphSize
from cagepool.sim.names import red_class_names

Backend: TypeAlias = Literal["auto", "native", "sync", "pipes", "workers"]
AnyVectorEnv: TypeAlias = VectorEnv[Any, Any, Any]

_BACKENDS = ("auto", "native", "sync", "pipes", "workers")
_NATIVE_ONLY = ("statistics", "threads")

CYBORG = "cyborg"
"""Name of the original simulator where a trainer takes the name of an environment."""


class MakeSettings(NativeSettings, WorkerSettings, total=False):
    """Keywords of `make_vec`; most are for some backends only."""

    statistics: bool | None
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
def make_vec(  # noqa: PLR0913 - all settings, so that help and editors show them
    num_envs: int,
    *,
    env: EnvSource = None,
    backend: Backend = "auto",
    autoreset: Autoreset | AutoresetMode = "next_step",
    copy: bool = True,
    red: str | Sequence[str] = BatchConfig.red,
    max_steps: int | Sequence[int] = BatchConfig.max_steps,
    edition: str | Sequence[str] = BatchConfig.edition,
    green: bool | Sequence[bool] = BatchConfig.green,
    order: str | Sequence[str] | None = BatchConfig.order,
    alignment: float = BatchConfig.alignment,
    knowledge: Literal["true", "observed"] = BatchConfig.knowledge,
    definition: Literal["host", "seed"] = BatchConfig.definition,
    observation_dtype: DTypeLike = BatchConfig.observation_dtype,
    scenario: ScenarioLike | None = None,
    scenario_per: Literal["env", "episode"] = BatchConfig.scenario_per,
    layout: Layout | None = None,
    observation: ObservationForm = "flat",
    graph_size: GraphSize | None = None,
    action_mask: bool = False,
    reward: RewardFunction | str | None = None,
    reward_weights: Mapping[str, float] | None = None,
    reward_parts: bool = False,
    moves: bool = False,
    render_mode: RenderMode | None = None,
    statistics: bool | None = None,
    threads: int = BatchConfig.threads,
    workers: int | None = PoolConfig.workers,
    timeout: float | None = PoolConfig.timeout,
    on_fault: OnFault = PoolConfig.on_fault,
    max_restarts: int = PoolConfig.max_restarts,
    true_state: TrueStateMode = PoolConfig.true_state,
    check: bool = PoolConfig.check,
    **settings: Any,
) -> AnyVectorEnv:
    """Make many environments as one Gymnasium vector environment.

    A setting that the backend or the environment does not have must keep its default.

    Args:
        num_envs: Number of environments.
        env: A function that makes one environment, a list with one function per environment, or an
            id that is registered with Gymnasium; None for CAGE-2.
        backend: `native`: CAGE-2 in this process; `workers`: processes and shared memory; `sync`
            and `pipes`: Gymnasium's SyncVectorEnv and AsyncVectorEnv; `auto`: `native` for
            CAGE-2, `workers` if one of their settings is given, otherwise the backend that a
            measurement of at most 0.2 s finds faster at this moment, for which one environment may
            be made and stepped. `envs.metadata["backend"]` is the choice.
        autoreset: When an environment whose episode ended starts the next one.
        copy: Whether the caller owns the arrays that `reset` and `step` return; if not, the next
            call overwrites them.
        red: CAGE-2: red agent by class name or alias; `a+b` and `mix` draw an agent per episode,
            `a:0.9+b:0.1` with these weights; with `given` the caller plays red. `red`, `max_steps`,
            `edition`, `green` and `order` may be lists with one value per game.
        max_steps: CAGE-2: steps after which an episode is truncated.
        edition: CAGE-2: `2.1`, or `leaderboard`, the game of the published scores.
        green: CAGE-2: whether GreenAgent scans hosts.
        order: CAGE-2: workflow order for compliance; None: compliance is not measured.
        alignment: CAGE-2: weight of the alignment reward.
        knowledge: CAGE-2: whether hosts count as threatened by red's true sessions (`true`) or by
            blue's table (`observed`).
        definition: CAGE-2: compliance as specified (`host`), or by the older definition (`seed`).
        observation_dtype: CAGE-2: NumPy type of the 52 values, float32 or uint8.
        scenario: CAGE-2: the network of the games, or several: a `cagepool.Scenario`, the path of a
            scenario file or of a folder of them, the name of a suite such as `cage2/users:train`, a
            sequence of these, or a function that makes a scenario of a seed, of which the first
            1,000 are taken. None: the network of the challenge. Spaces are those of the scenario,
            or for several, those of `cagepool.scenarios.Layout.of(scenarios)`.
        scenario_per: CAGE-2: with several scenarios, whether environment i keeps scenario i (modulo
            their number), `env`, or each episode draws one, `episode`.
        layout: CAGE-2: slots of hosts and kinds of actions in the spaces, where those of the
            scenarios are not wanted.
        observation: CAGE-2: `flat`, the values of CybORG's wrapper, or `graph`, a dictionary of
            arrays: nodes, edges and masks.
        graph_size: CAGE-2: sizes of the arrays of a graph; None: those of the largest scenario.
        action_mask: CAGE-2: whether infos hold the mask of the actions that can have an effect.
        reward: CAGE-2: function, or `module:function`, that gets an `envs.RewardStep` and returns
            the rewards of its games; None: the official reward.
        reward_weights: CAGE-2: factors of the parts of the official reward, such as
            `{"restores": 0.5}`; the parts are `sim.rewards.REWARD_PARTS`. Evaluations always use
            the official reward.
        reward_parts: CAGE-2: whether infos hold the parts of the official reward by name, and all
            of them as whole `tenths`, whose sum divided by 10 is the reward to the bit.
        moves: CAGE-2: whether infos hold the moves of blue, green and red in names.
        render_mode: Passed on to the environments.
        statistics: `native`: whether infos hold return, length and seconds of the episodes that
            ended, as Gymnasium's RecordEpisodeStatistics gives them; that wrapper needs False.
            None: True for `native`.
        threads: `native`: threads that step games; 0: chosen by the number of games and cores.
        workers: `workers`: processes, at most one per environment; None: one per usable core.
        timeout: `workers`: limit in seconds for one step or reset of one environment; None or inf:
            no limit.
        on_fault: `workers`: whether an environment that raises, dies or hangs is an error
            (`raise`) or is replaced (`restart`).
        max_restarts: `workers`: replacements, after which the next fault is an error.
        true_state: `workers`: when `true_state()` is queried: `every` step, every n steps, at the
            `end`, or `never`.
        check: `workers`: whether an observation outside of its space is a fault.
        settings: Further keywords of `gym.make`, if `env` is an id other than CAGE-2's. `red_agent`
            and `max_episode_steps` are other names of `red` and `max_steps`.

    Raises:
        TypeError: a setting is unknown, or the backend does not take it.
        ValueError: a setting has an unknown value.
        RuntimeError: `workers` cannot run on this platform.
        EnvironmentFault: an environment in a worker cannot be made.
    """
    keywords = _given_settings(locals())
    if backend not in _BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(_BACKENDS)}; got {backend!r}")
    if not isinstance(env, str) or is_cage2(env):  # gym.make has settings of its own
        keywords = rename_aliases(keywords)
        check_names(keywords, _DEFAULTS)
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
    return _make_gymnasium_vec(chosen_backend, env_fns, autoreset=autoreset, copy=copy)


def _make_gymnasium_vec(
    backend: str, env_fns: list[EnvFn], *, autoreset: Autoreset | AutoresetMode, copy: bool
) -> AnyVectorEnv:
    mode = AutoresetMode[autoreset_name(autoreset).upper()]
    envs: AnyVectorEnv
    if backend == "sync":
        envs = SyncVectorEnv(env_fns, copy=copy, autoreset_mode=mode)
    else:
        # Threads of native games do not survive a fork of this process.
        context = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"
        envs = AsyncVectorEnv(env_fns, copy=copy, autoreset_mode=mode, context=context)
    envs.metadata = {**envs.metadata, "backend": backend}
    return envs


def make(  # noqa: PLR0913 - see make_vec
    *,
    red: str | Sequence[str] = BatchConfig.red,
    max_steps: int | Sequence[int] = BatchConfig.max_steps,
    edition: str | Sequence[str] = BatchConfig.edition,
    green: bool | Sequence[bool] = BatchConfig.green,
    order: str | Sequence[str] | None = BatchConfig.order,
    alignment: float = BatchConfig.alignment,
    knowledge: Literal["true", "observed"] = BatchConfig.knowledge,
    definition: Literal["host", "seed"] = BatchConfig.definition,
    observation_dtype: DTypeLike = BatchConfig.observation_dtype,
    scenario: ScenarioLike | None = None,
    scenario_per: Literal["env", "episode"] = BatchConfig.scenario_per,
    layout: Layout | None = None,
    observation: ObservationForm = "flat",
    graph_size: GraphSize | None = None,
    action_mask: bool = False,
    reward: RewardFunction | str | None = None,
    reward_weights: Mapping[str, float] | None = None,
    reward_parts: bool = False,
    moves: bool = False,
    render_mode: RenderMode | None = None,
    **settings: Any,
) -> Cage2Env:
    """Make one game of CAGE-2 as a Gymnasium environment, without the wrappers of `gym.make`.

    `make_vec` documents the settings. A reward function gets arrays of length 1.

    Raises:
        TypeError: a setting is unknown.
        ValueError: a setting has an unknown value.
    """
    return Cage2Env(**_given_settings(locals()))


def split_worker_settings(keywords: dict[str, Any]) -> WorkerSettings:
    """Remove the settings of the backend `workers` from the keywords, and return them."""
    names = [name for name in WorkerSettings.__annotations__ if name in keywords]
    return cast("WorkerSettings", {name: keywords.pop(name) for name in names})


def _backend_without_trial(
    backend: Backend, env: EnvSource, keywords: Collection[str]
) -> Backend | None:
    """The backend, or None if `auto` has to find the fastest."""
    if backend != "auto":
        return backend
    if is_cage2(env):
        return "native"
    return "workers" if WorkerSettings.__annotations__.keys() & keywords else None


_CHOICES_OF_MAKE_VEC = ("num_envs", "env", "backend", "autoreset", "copy", "settings")
_DEFAULTS = {
    name: parameter.default
    for name, parameter in signature(make_vec).parameters.items()
    if name not in _CHOICES_OF_MAKE_VEC
}


def _given_settings(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Settings among the arguments of `make_vec` or `make` that differ from their defaults."""
    given = {
        name: value
        for name, value in arguments.items()
        if name in _DEFAULTS
        and (type(value) is not type(_DEFAULTS[name]) or value != _DEFAULTS[name])
    }
    return {**given, **arguments["settings"]}


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

"""`make_vec` makes vector environments on any backend; `make` makes a single one."""

import signal
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache, partial
from multiprocessing import get_all_start_methods, parent_process
from typing import Any, Literal, TypeAlias, Unpack, cast, overload

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import FlattenObservation
from numpy.typing import DTypeLike

from cagepool._lookup import is_reference, load_module, load_object
from cagepool.cyborg.env import CybORGEnv
from cagepool.envs.auto_backend import choose_backend
from cagepool.envs.native import NativeVectorEnv
from cagepool.envs.reward_hook import RewardFunction
from cagepool.envs.settings import (
    ENV_SETTINGS,
    VEC_SETTINGS,
    EnvKeywords,
    EnvSettings,
    ObservationForm,
    RenderMode,
    VecKeywords,
    env_count,
    read_settings,
)
from cagepool.envs.single import ENVIRONMENT_ID, Cage2Env
from cagepool.envs.vector_args import AnyEnv, AnyVectorEnv, Autoreset, EnvFn, autoreset_name
from cagepool.envs.workers import WorkerVectorEnv
from cagepool.envs.workers.pool import OnFault, PoolConfig, WorkerSettings
from cagepool.envs.workers.true_state import TrueStateMode
from cagepool.scenarios import Layout, Scenario
from cagepool.scenarios.suites import ScenarioLike
from cagepool.sim.graph import GraphSize
from cagepool.sim.graph import graph_size as common_graph_size
from cagepool.sim.names import red_class_names
from cagepool.sim.settings import PER_GAME, Definition, GameSettings, Knowledge

Backend: TypeAlias = Literal["auto", "native", "sync", "pipes", "workers"]
EnvSource: TypeAlias = str | EnvFn | Sequence[EnvFn] | None

CYBORG = "cyborg"
"""Name of the original simulator where a trainer takes the name of an environment."""

_BACKENDS = ("auto", "native", "sync", "pipes", "workers")
_SETTINGS = (*VEC_SETTINGS, "num_envs", "env", "backend", "autoreset", "copy")
_NATIVE_ONLY = ("statistics", "threads")
_WORKERS_ONLY = tuple(WorkerSettings.__annotations__)
_DEFAULTS = {
    name: getattr(EnvSettings, name, getattr(PoolConfig, name, None)) for name in VEC_SETTINGS
}


@overload
def make_vec(
    num_envs: int | None = None,
    *,
    n_envs: int | None = None,
    env: None = None,
    backend: Literal["auto", "native"] = "auto",
    autoreset: Autoreset | AutoresetMode = "next_step",
    copy: bool = True,
    **settings: Unpack[VecKeywords],
) -> NativeVectorEnv: ...
@overload
def make_vec(
    num_envs: int | None = None,
    *,
    n_envs: int | None = None,
    env: EnvSource = None,
    backend: Literal["workers"],
    autoreset: Autoreset | AutoresetMode = "next_step",
    copy: bool = True,
    **settings: Unpack[VecKeywords],
) -> WorkerVectorEnv: ...
@overload
def make_vec(
    num_envs: int | None = None,
    *,
    n_envs: int | None = None,
    env: EnvSource = None,
    backend: Backend = "auto",
    autoreset: Autoreset | AutoresetMode = "next_step",
    copy: bool = True,
    **settings: Unpack[VecKeywords],
) -> AnyVectorEnv: ...
def make_vec(  # noqa: PLR0913 - all settings, so that help and editors show them
    num_envs: int | None = None,
    *,
    n_envs: int | None = None,
    env: EnvSource = None,
    backend: Backend = "auto",
    autoreset: Autoreset | AutoresetMode = "next_step",
    copy: bool = True,
    red: str | Sequence[str] = EnvSettings.red,
    max_steps: int | Sequence[int] = EnvSettings.max_steps,
    edition: str | Sequence[str] = EnvSettings.edition,
    green: bool | Sequence[bool] = EnvSettings.green,
    order: str | Sequence[str] | None = EnvSettings.order,
    alignment: float = EnvSettings.alignment,
    knowledge: Knowledge = EnvSettings.knowledge,
    definition: Definition = EnvSettings.definition,
    observation_dtype: DTypeLike = EnvSettings.observation_dtype,
    scenario: ScenarioLike | None = EnvSettings.scenario,
    scenario_per: Literal["env", "episode"] = EnvSettings.scenario_per,
    layout: Layout | None = EnvSettings.layout,
    observation: ObservationForm = EnvSettings.observation,
    graph_size: GraphSize | None = EnvSettings.graph_size,
    action_mask: bool = EnvSettings.action_mask,
    reward: RewardFunction | str | None = EnvSettings.reward,
    reward_weights: Mapping[str, float] | None = EnvSettings.reward_weights,
    reward_parts: bool = EnvSettings.reward_parts,
    moves: bool = EnvSettings.moves,
    render_mode: RenderMode | None = EnvSettings.render_mode,
    statistics: bool | None = None,
    threads: int = EnvSettings.threads,
    workers: int | None = PoolConfig.workers,
    timeout: float | None = PoolConfig.timeout,
    on_fault: OnFault = PoolConfig.on_fault,
    max_restarts: int = PoolConfig.max_restarts,
    true_state: TrueStateMode = PoolConfig.true_state,
    check: bool = PoolConfig.check,
    **settings: Any,
) -> AnyVectorEnv:
    """Make many environments as one Gymnasium vector environment.

    Settings of the game, `red` to `moves`, are for CAGE-2 and other scenarios. A setting that the
    backend or the environment does not have must keep its default.

    Args:
        num_envs: Number of environments; also as `n_envs`.
        n_envs: Other name of `num_envs`.
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
        red: Red agent by class name or alias; `a+b` and `mix` draw an agent per episode,
            `a:0.9+b:0.1` with these weights; with `given` the caller plays red. `red`, `max_steps`,
            `edition`, `green` and `order` may be lists with one value per game.
        max_steps: Steps after which an episode is truncated.
        edition: `2.1`, or `leaderboard`, the game of the published scores.
        green: Whether GreenAgent scans hosts.
        order: Workflow order for compliance; None: compliance is not measured.
        alignment: Weight of the alignment reward.
        knowledge: Whether hosts count as threatened by red's true sessions (`true`) or by blue's
            table (`observed`).
        definition: Compliance as specified (`host`), or by the type of a fix only (`fix-type`).
        observation_dtype: NumPy type of flat observations, float32 or uint8.
        scenario: Scenario or scenarios of the games: a `cagepool.Scenario`, the path of a scenario
            file or of a folder of them, the name of a suite such as `cage2/users:train`, a
            sequence of these, or a function from a seed to a scenario, of which the first 1,000
            are taken. None: CAGE-2. Spaces are those of `cagepool.scenarios.Layout.of(scenarios)`.
        scenario_per: `env`: environment i keeps scenario i modulo their number; `episode`: each
            episode draws one.
        layout: Slots of hosts and kinds of actions in the spaces; None: those of the scenarios.
        observation: `flat`, the values of CybORG's wrapper, or `graph`, a dictionary of arrays:
            nodes, edges and masks.
        graph_size: Sizes of the arrays of a graph; None: those of the largest scenario.
        action_mask: Whether infos hold the mask of the actions that can have an effect.
        reward: Function, or `module:function`, that gets an `envs.RewardStep` and returns the
            rewards of its games; None: the official reward. Evaluations use the official one.
        reward_weights: Factors of the parts of the official reward, `sim.rewards.REWARD_PARTS`,
            such as `{"restores": 0.5}`.
        reward_parts: Whether infos hold the parts of the official reward by name, and all of them
            as whole `tenths`, whose sum divided by 10 is the reward to the bit.
        moves: Whether infos hold the moves of blue, green and red in names.
        render_mode: `ansi`, `rgb_array` or None.
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
        settings: Keywords of `gym.make`, if `env` is an id other than CAGE-2's; other names of
            settings: `red_agent`, `max_episode_steps`.

    Raises:
        TypeError: a setting is unknown, given twice, or the backend does not take it.
        ValueError: a setting has an unknown value.
        RuntimeError: `workers` cannot run on this platform.
        EnvironmentFault: an environment in a worker cannot be made.
    """
    count = env_count(num_envs, n_envs)
    if backend not in _BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(_BACKENDS)}; got {backend!r}")
    named: dict[str, Any] = {
        "red": red, "max_steps": max_steps, "edition": edition, "green": green, "order": order,
        "alignment": alignment, "knowledge": knowledge, "definition": definition,
        "observation_dtype": observation_dtype, "scenario": scenario,
        "scenario_per": scenario_per, "layout": layout, "observation": observation,
        "graph_size": graph_size, "action_mask": action_mask, "reward": reward,
        "reward_weights": reward_weights, "reward_parts": reward_parts, "moves": moves,
        "render_mode": render_mode, "statistics": statistics, "threads": threads,
        "workers": workers, "timeout": timeout, "on_fault": on_fault,
        "max_restarts": max_restarts, "true_state": true_state, "check": check,
    }  # fmt: skip
    keywords = {name: value for name, value in named.items() if _is_given(name, value)} | settings
    if not isinstance(env, str) or is_cage2(env):  # gym.make has settings of its own
        keywords = read_settings(keywords, _SETTINGS)
    known_backend = _backend_without_trial(backend, env, keywords)
    _check_backend(known_backend or "sync", keywords)
    if known_backend == "native":
        if not is_cage2(env):
            raise ValueError(f"backend 'native' plays CAGE-2 only, got env={env!r}")
        return NativeVectorEnv(
            count, autoreset=autoreset, copy=copy, **{"statistics": True, **keywords}
        )
    pool_settings = split_worker_settings(keywords)
    env_fns = make_env_fns(count, env, keywords)
    chosen_backend = known_backend or choose_backend(env_fns)
    if chosen_backend == "workers":
        return WorkerVectorEnv(env_fns, autoreset=autoreset, copy=copy, **pool_settings)
    return _make_gymnasium_vec(chosen_backend, env_fns, autoreset=autoreset, copy=copy)


def _is_given(name: str, value: object) -> bool:
    """Whether a setting differs from its default; the types too, as True is 1."""
    default = _DEFAULTS[name]
    return type(value) is not type(default) or value != default


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


def make(**settings: Unpack[EnvKeywords]) -> Cage2Env:
    """Make one game as a Gymnasium environment, without the wrappers of `gym.make`.

    `make_vec` documents the settings. A reward function gets arrays of length 1.

    Raises:
        TypeError: a setting is unknown.
        ValueError: a setting has an unknown value.
    """
    return Cage2Env(**settings)


def split_worker_settings(keywords: dict[str, Any]) -> WorkerSettings:
    """Remove the settings of the backend `workers` from the keywords, and return them."""
    names = [name for name in _WORKERS_ONLY if name in keywords]
    return cast("WorkerSettings", {name: keywords.pop(name) for name in names})


def _backend_without_trial(
    backend: Backend, env: EnvSource, keywords: Collection[str]
) -> Backend | None:
    """The backend, or None if `auto` has to find the fastest."""
    if backend != "auto":
        return backend
    if is_cage2(env):
        return "native"
    return "workers" if {*_WORKERS_ONLY} & {*keywords} else None


def _check_backend(backend: Backend, keywords: Collection[str]) -> None:
    """Raise TypeError for settings that the backend would ignore."""
    refused_by = {"native": _WORKERS_ONLY, "workers": _NATIVE_ONLY}
    refused = refused_by.get(backend, (*_WORKERS_ONLY, *_NATIVE_ONLY))
    wrong = [name for name in keywords if name in refused]
    if wrong:
        raise TypeError(f"backend '{backend}' does not take {', '.join(wrong)}")


def make_training_vec(
    num_envs: int,
    env: str,
    backend: str,
    game: GameSettings,
    **more: Unpack[VecKeywords],
) -> AnyVectorEnv:
    """Make vector environments for a trainer: autoreset same_step, flat observations, no copies.

    `env` is `cagepool/CAGE2-v0`, `cyborg`, an id that is registered with Gymnasium, or
    `module:function`; only the first two take settings of the game.
    """
    make = partial(make_vec, num_envs, backend=cast("Backend", backend), autoreset="same_step")
    if is_cage2(env):
        options = {"statistics": False} if backend in ("auto", "native") else {}
        return cast("AnyVectorEnv", make(copy=False, **options, **more, **vars(game)))
    if env == CYBORG:
        env_fns: list[EnvFn] = [
            partial(CybORGEnv, **settings) for settings in _cyborg_settings(num_envs, game)
        ]
    else:
        env_fns = [partial(_make_flat, find_env_fn(env))] * num_envs
    if backend == "pipes":
        env_fns = [ignore_sigint(env_fn) for env_fn in env_fns]
    envs = cast("AnyVectorEnv", make(env=env_fns, **more))
    actions = envs.single_action_space
    if not isinstance(actions, Discrete) or actions.start:
        envs.close()
        raise ValueError(
            f"the actions of an environment must be Discrete and begin at 0, {env} has {actions}"
        )
    return envs


def _make_flat(env_fn: EnvFn) -> AnyEnv:
    return FlattenObservation(env_fn())


def _cyborg_settings(num_envs: int, game: GameSettings) -> list[dict[str, Any]]:
    """Settings per environment; the reds of a mix take turns, as CybORG cannot change its red."""
    reds = red_class_names(cast("str", game.red))
    shared = {name: getattr(game, name) for name in ("green", "max_steps", "edition")}
    return [{"red": reds[env % len(reds)], **shared} for env in range(num_envs)]


def is_cage2(env: EnvSource) -> bool:
    """Whether `env` stands for our CAGE-2 environment."""
    return env is None or env == ENVIRONMENT_ID


def make_env_fns(num_envs: int, env: EnvSource, settings: Mapping[str, Any]) -> list[EnvFn]:
    """One function per environment; settings are those of `Cage2Env`, or of `gym.make`."""
    if num_envs < 1:
        raise ValueError(f"there must be at least 1 environment, got {num_envs}")
    if env is None or is_cage2(env):
        keywords = read_settings(settings, ENV_SETTINGS)
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
    for name in chosen.keys() & PER_GAME:
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
_common_size = lru_cache(maxsize=4)(common_graph_size)


def find_env_fn(env: str) -> EnvFn:
    """The function that `module:function` names, or `gym.make` with an id.

    As in Gymnasium, `module:id` names an id that importing the module registers.
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

"""Vector environments and defenders for Stable-Baselines3."""

from collections.abc import Sequence
from functools import partial
from inspect import signature
from time import perf_counter
from typing import Any, Unpack, cast

import numpy as np

from cagepool import _optional
from cagepool.envs.feature_wrapper import FeatureVectorEnv
from cagepool.envs.make import (
    Backend,
    EnvSource,
    is_cage2,
    make_env_fns,
    make_vec,
    split_worker_settings,
)
from cagepool.envs.native import NativeVectorEnv
from cagepool.envs.settings import VecKeywords, env_count, rename_aliases
from cagepool.envs.spaces import Tree, map_tree
from cagepool.envs.vector_args import AnyVectorEnv
from cagepool.integrations.pool_members import (
    RESET_OPTIONS,
    IndexedEnv,
    PoolMembers,
    WrapperClass,
)
from cagepool.policy import Defender
from cagepool.policy.policy import EncodedDefender
from cagepool.scenarios import CAGE2, resolve_scenarios
from cagepool.sim.batch import BatchConfig
from cagepool.sim.encoder import FeatureConfig, FeatureEncoder, GameScenarios
from cagepool.sim.settings import DEFAULT_MAX_STEPS
from cagepool.types import Bools, Infos, Int64s

with _optional.require("cagepool.integrations.sb3", "sb3", "stable_baselines3"):
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv

PLAIN_FEATURES = FeatureConfig(
    scan_memory=False, decoys_placed=False, last_action=False, time_left=False, actions="all"
)
"""The 52 values of an observation and all 145 actions."""

_MASKS_METHOD = "action_masks"  # method that sb3-contrib calls, and argument of its `predict`
_RESTART_KEYS = ("restarted", "fault")  # infos of an environment that a worker restarted
_FIXED_SETTINGS = ("autoreset", "copy", "statistics")  # of `make_vec`; a `VecEnv` needs its own


def make(
    num_envs: int | None = None,
    *,
    n_envs: int | None = None,
    env: EnvSource = None,
    backend: Backend = "auto",
    inputs: FeatureConfig | None = None,
    **settings: Unpack[VecKeywords],
) -> "PoolVecEnv":
    """Make many environments as one `VecEnv`.

    Args:
        num_envs: Number of environments; also as `n_envs`.
        n_envs: Other name of `num_envs`.
        env: See `make_vec`; None for CAGE-2.
        backend: See `make_vec`.
        inputs: Policy features and action subset of our trainer, instead of CAGE-2's 52 values and
            145 actions.
        settings: See `make_vec`, except for `autoreset`, `copy` and `statistics`.

    Raises:
        TypeError: the backend does not take a setting.
        ValueError: a setting has an unknown value.
    """
    fixed = [name for name in _FIXED_SETTINGS if name in settings]
    if fixed:
        raise TypeError(f"a VecEnv has its own {' and '.join(fixed)}, got {', '.join(fixed)}=")
    keywords: dict[str, Any] = rename_aliases(settings) if is_cage2(env) else {**settings}
    horizon = int(np.max(keywords.get("max_steps", BatchConfig.max_steps)))
    scenario = keywords.get("scenario")
    if inputs is not None and scenario is not None and {*resolve_scenarios(scenario)} != {CAGE2}:
        raise ValueError("inputs need CAGE-2, got another scenario")
    envs = _make_pool(env_count(num_envs, n_envs), env, backend, keywords)
    if inputs is not None:
        envs = cast("AnyVectorEnv", FeatureVectorEnv(envs, inputs, max_steps=horizon))
    return PoolVecEnv(envs)


def _make_pool(
    num_envs: int, env: EnvSource, backend: Backend, keywords: dict[str, Any]
) -> AnyVectorEnv:
    make_envs = partial(make_vec, num_envs, autoreset="same_step")
    if is_cage2(env) and backend in ("auto", "native"):
        return cast("AnyVectorEnv", make_envs(statistics=False, **keywords))
    pool_settings = split_worker_settings(keywords)
    env_fns = make_env_fns(num_envs, env, keywords)
    indexed = [partial(IndexedEnv, env_fn, index) for index, env_fn in enumerate(env_fns)]
    return cast("AnyVectorEnv", make_envs(env=indexed, backend=backend, **pool_settings))


def defender(
    model: Any, inputs: FeatureConfig | None = None, *, max_steps: int = DEFAULT_MAX_STEPS
) -> Defender:
    """Wrap a trained model as a defender that plays greedily, for `cagepool.evaluate`.

    Args:
        model: A model of Stable-Baselines3, such as PPO or MaskablePPO.
        inputs: The `inputs` of its environments.
        max_steps: The `max_steps` of its environments, for the feature `time_left`.
    """
    return ModelDefender(model, inputs or PLAIN_FEATURES, max_steps=max_steps)


class PoolVecEnv(VecEnv):
    """A vector environment of ours as a `VecEnv`, with the infos of `DummyVecEnv`.

    The last info of an episode also has the key `episode`, as SB3's Monitor writes it.
    """

    pool: Any  # the vector environment that `make_vec` made

    def __init__(self, envs: AnyVectorEnv) -> None:
        """Take native games or `IndexedEnv`s, with autoreset same_step."""
        self.pool = envs.unwrapped
        self._envs: Any = envs  # Any: wrappers take more arguments than their base class
        self._indices = range(envs.num_envs)
        self._members = PoolMembers(self.pool)
        self._actions: Any = None
        self._is_closed = False
        self._returns = np.zeros(envs.num_envs)
        self._lengths = np.zeros(envs.num_envs, np.int64)
        self._started_s = perf_counter()
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def reset(self) -> Any:
        """Start new episodes with the seeds and options that were set before."""
        options = {RESET_OPTIONS: self._options} if any(self._options) else None
        observations, infos = self._envs.reset(seed=self._seeds, options=options)
        self.reset_infos = [_info_of(infos, index) for index in self._indices]
        self._returns[:] = 0
        self._lengths[:] = 0
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: Any) -> None:
        """Store the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> Any:
        """Step all environments with the stored actions."""
        observations, rewards, terminations, truncations, infos = self._envs.step(self._actions)
        self._returns += rewards
        self._lengths += 1
        dones = terminations | truncations
        # One dictionary per environment, since wrappers and callbacks write into them.
        info_list: list[dict[str, Any]] = [{"TimeLimit.truncated": False} for _ in self._indices]
        if infos:
            self._split_infos(info_list, infos, dones)
        if dones.any():
            self._add_episode_infos(info_list, observations, dones, truncations & ~terminations)
        return observations, rewards.astype(np.float32), dones, info_list

    def _split_infos(self, info_list: list[dict[str, Any]], infos: Infos, dones: Bools) -> None:
        """Split the infos of a vector environment; those of an autoreset go to `reset_infos`."""
        masks = [mask for name, mask in infos.items() if name.startswith("_")]
        for index in np.flatnonzero(np.logical_or.reduce(masks)).tolist():
            info, target = _info_of(infos, index), info_list[index]
            if not dones[index]:
                target.update(info)
                continue
            target.update(info.pop("final_info", {}))
            target.update({name: info.pop(name) for name in _RESTART_KEYS if name in info})
            if "final_obs" in info:
                target["terminal_observation"] = info.pop("final_obs")
            self.reset_infos[index] = info

    def _add_episode_infos(
        self, info_list: list[dict[str, Any]], observations: Tree, dones: Bools, truncated: Bools
    ) -> None:
        """Add the keys that Stable-Baselines3 expects at the end of an episode."""
        elapsed_s = round(perf_counter() - self._started_s, 6)
        for index in np.flatnonzero(dones).tolist():
            info = info_list[index]
            total, length = float(self._returns[index]), int(self._lengths[index])
            info["TimeLimit.truncated"] = bool(truncated[index])
            info["episode"] = {"r": round(total, 6), "l": length, "t": elapsed_s}
            if "terminal_observation" not in info:
                info["terminal_observation"] = _copy_row(observations, index)
        self._returns[dones] = 0
        self._lengths[dones] = 0

    def close(self) -> None:
        """Close the environments; may be called twice."""
        if not self._is_closed:
            self._is_closed = True
            self._envs.close()

    def has_attr(self, attr_name: str) -> bool:
        """Whether all environments have the attribute; its values are not transferred."""
        try:
            return self._is_native_masks(attr_name) or all(self._query(None, "has", attr_name))
        except AttributeError:
            return False

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Get an attribute of each environment."""
        return self._query(indices, "get", attr_name)

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of each environment."""
        self._query(indices, "set", attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of each environment."""
        if self._is_native_masks(method_name):  # one call for all games
            masks = self._envs.action_masks(*method_args, **method_kwargs)
            return [masks[index] for index in self._get_indices(indices)]
        return self._query(indices, "call", method_name, *method_args, **method_kwargs)

    def env_is_wrapped(self, wrapper_class: WrapperClass, indices: Any = None) -> list[bool]:
        """Whether each environment is inside a wrapper of this class.

        True for Monitor, because the infos have the statistics that Monitor writes.
        """
        if wrapper_class is Monitor:
            return [True for _ in self._get_indices(indices)]
        return self._query(indices, "is_wrapped", wrapper_class)

    def get_images(self) -> Sequence[Any]:
        """Render each environment."""
        return self.env_method("render")

    def _is_native_masks(self, name: str) -> bool:
        return name == _MASKS_METHOD and isinstance(self._envs, NativeVectorEnv | FeatureVectorEnv)

    def _query(
        self, indices: Any, verb: str, name: Any, *arguments: Any, **keywords: Any
    ) -> list[Any]:
        envs = [self._indices[index] for index in self._get_indices(indices)]
        return self._members.query(envs, verb, name, *arguments, **keywords)


def _info_of(infos: Infos, index: int) -> dict[str, Any]:
    """Info of one environment, from the infos of a vector environment."""
    return {
        name: _info_of(values, index) if isinstance(values, dict) else values[index]
        for name, values in infos.items()
        if not name.startswith("_") and infos[f"_{name}"][index]
    }


def _copy_row(tree: Tree, index: int) -> Tree:
    return map_tree(lambda array: array[index].copy(), tree)


class ModelDefender(EncodedDefender):
    """A model without state of its own, which plays greedily and sees features of an encoder."""

    def __init__(self, model: Any, features: FeatureConfig, *, max_steps: int) -> None:
        """Take a model with the features and the horizon of its training."""
        self._model = model
        self._is_maskable = _MASKS_METHOD in signature(model.predict).parameters
        self._config = features
        self._max_steps = max_steps

    def _make_encoder(self, games: GameScenarios) -> FeatureEncoder:
        return FeatureEncoder(self._config, games.games, horizon=self._max_steps)

    def _choose(self) -> Int64s:
        masks = {} if self._masks is None else {_MASKS_METHOD: self._masks.astype(np.bool_)}
        keywords = masks if self._is_maskable else {}
        choices: Int64s = self._model.predict(self._rows, deterministic=True, **keywords)[0]
        return choices

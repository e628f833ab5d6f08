"""Pools as vector environments of Stable-Baselines3."""

from collections.abc import Sequence
from functools import partial
from inspect import signature
from time import perf_counter
from typing import Any, Unpack, cast

import numpy as np

from cagepool import _optional
from cagepool.envs.env_fns import Source, is_ours, makers_for
from cagepool.envs.feature_wrapper import RememberingVectorEnv
from cagepool.envs.make import AnyVectorEnv, Backend, MakeSettings, make_vec
from cagepool.envs.native import NativeVectorEnv
from cagepool.envs.space_tree import Tree, mapped
from cagepool.envs.workers.config import WorkerSettings
from cagepool.evaluate import Defender
from cagepool.integrations.defender import PLAIN, ChoosingDefender
from cagepool.integrations.members import OPTIONS, Member, Members, Wrapper
from cagepool.sim.batch import BatchConfig
from cagepool.sim.features import FeatureConfig
from cagepool.types import Bools, Bytes, Float32s, Infos, Int64s

with _optional.needed("cagepool.integrations.sb3", "sb3", "stable_baselines3"):
    from stable_baselines3.common.vec_env import VecEnv

RESTART = ("restarted", "fault")  # what workers say of an environment that was made anew
MASKS = "action_masks"  # the method that sb3-contrib asks for


def make(
    num_envs: int,
    *,
    env: Source = None,
    backend: Backend = "auto",
    inputs: FeatureConfig | None = None,
    **settings: Unpack[MakeSettings],
) -> "PoolVecEnv":
    """Many environments as one of Stable-Baselines3's.

    Args:
        num_envs: How many.
        env: See `make_vec`; none: CAGE-2.
        backend: See `make_vec`.
        inputs: What the policy sees and chooses from, instead of CAGE-2's 52 values and 145
            actions: the inputs of our trainer, which remember the episode.
        settings: See `make_vec`; `statistics` and `copy` are not offered.

    Raises:
        TypeError: the backend does not take a setting.
        ValueError: a setting is not one that is known.
    """
    horizon = int(np.max(settings.get("max_steps", BatchConfig.max_steps)))
    envs = _pool(num_envs, env, backend, cast("dict[str, Any]", settings))
    if inputs is not None:
        envs = cast("AnyVectorEnv", RememberingVectorEnv(envs, inputs, max_steps=horizon))
    return PoolVecEnv(envs)


def _pool(num_envs: int, env: Source, backend: Backend, given: dict[str, Any]) -> AnyVectorEnv:
    made = partial(make_vec, num_envs, autoreset="same_step")
    if is_ours(env) and backend in ("auto", "native"):
        return cast("AnyVectorEnv", made(statistics=False, **given))
    pool = {name: given.pop(name) for name in WorkerSettings.__annotations__ if name in given}
    makers = makers_for(num_envs, env, given)
    members = [partial(Member, maker, number) for number, maker in enumerate(makers)]
    return cast("AnyVectorEnv", made(env=members, backend=backend, **pool))


def defender(model: Any, inputs: FeatureConfig | None = None, *, max_steps: int = 100) -> Defender:
    """A trained model as a defender that plays greedily, for `cagepool.evaluate`.

    Args:
        model: Such as PPO or MaskablePPO.
        inputs: Those with which its environments were made.
        max_steps: That of its environments, if the inputs tell the time that is left.
    """
    is_masked = "action_masks" in signature(model.predict).parameters

    def choose(rows: Float32s, masks: Bytes) -> Int64s:
        allowed = {MASKS: masks.astype(np.bool_)} if is_masked else {}
        chosen: Int64s = model.predict(rows, deterministic=True, **allowed)[0]
        return chosen

    return ChoosingDefender(choose, inputs or PLAIN, max_steps=max_steps)


class PoolVecEnv(VecEnv):
    """A pool in Stable-Baselines3's terms; infos are those of its DummyVecEnv.

    Beside these, the info of an episode's end holds `episode`, as its Monitor gives it.
    """

    pool: Any  # the vector environment that `make_vec` made

    def __init__(self, envs: AnyVectorEnv) -> None:
        """Take a pool of native games or of `Member`, which reset in the same step."""
        self.pool = envs.unwrapped
        self._envs: Any = envs  # whose wrappers take more than their base says
        self._numbers = range(envs.num_envs)
        self._members = Members(self.pool)
        self._actions: Any = None
        self._is_closed = False
        self._returns = np.zeros(envs.num_envs)
        self._lengths = np.zeros(envs.num_envs, np.int64)
        self._began_s = perf_counter()
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def reset(self) -> Any:
        """First observations, with the seeds and options that were set before."""
        options = {OPTIONS: self._options} if any(self._options) else None
        observations, infos = self._envs.reset(seed=self._seeds, options=options)
        self.reset_infos = [_row(infos, number) for number in self._numbers]
        self._returns[:] = 0
        self._lengths[:] = 0
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: Any) -> None:
        """Keep the actions."""
        self._actions = actions

    def step_wait(self) -> Any:
        """Play the actions that were kept."""
        observations, rewards, terminations, truncations, infos = self._envs.step(self._actions)
        self._returns += rewards
        self._lengths += 1
        dones = terminations | truncations
        # One for each: wrappers and callbacks write into them.
        told: list[dict[str, Any]] = [{"TimeLimit.truncated": False} for _ in self._numbers]
        if infos:
            self._tell(told, infos, dones)
        if dones.any():
            self._end(told, observations, dones, truncations & ~terminations)
        return observations, rewards.astype(np.float32), dones, told

    def _tell(self, told: list[dict[str, Any]], infos: Infos, dones: Bools) -> None:
        """Give each environment its infos; those of a reset are kept apart."""
        masks = [mask for name, mask in infos.items() if name.startswith("_")]
        for number in np.flatnonzero(np.logical_or.reduce(masks)).tolist():
            info = _row(infos, number)
            if not dones[number]:
                told[number].update(info)
                continue
            told[number].update(info.pop("final_info", {}))
            told[number].update({name: info.pop(name) for name in RESTART if name in info})
            if "final_obs" in info:
                told[number]["terminal_observation"] = info.pop("final_obs")
            self.reset_infos[number] = info

    def _end(
        self, told: list[dict[str, Any]], observations: Tree, dones: Bools, cut_off: Bools
    ) -> None:
        """Add what Stable-Baselines3 wants to know of episodes that ended."""
        now_s = round(perf_counter() - self._began_s, 6)
        for number in np.flatnonzero(dones).tolist():
            reward, length = float(self._returns[number]), int(self._lengths[number])
            told[number]["TimeLimit.truncated"] = bool(cut_off[number])
            told[number]["episode"] = {"r": round(reward, 6), "l": length, "t": now_s}
            told[number].setdefault("terminal_observation", _part(observations, number))
        self._returns[dones] = 0
        self._lengths[dones] = 0

    def close(self) -> None:
        """Let go of the environments, once."""
        if not self._is_closed:
            self._is_closed = True
            self._envs.close()

    def has_attr(self, attr_name: str) -> bool:
        """Whether all environments have it; nothing of it is carried between processes."""
        try:
            return self._is_masks(attr_name) or all(self._ask(None, "has", attr_name))
        except AttributeError:
            return False

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """This attribute of each environment."""
        return self._ask(indices, "get", attr_name)

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set this attribute of each environment."""
        self._ask(indices, "set", attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """What this method of each environment gives."""
        if self._is_masks(method_name):  # all at once
            masks = self._envs.action_masks(*method_args, **method_kwargs)
            return [masks[number] for number in self._get_indices(indices)]
        return self._ask(indices, "call", method_name, *method_args, **method_kwargs)

    def env_is_wrapped(self, wrapper_class: Wrapper, indices: Any = None) -> list[bool]:
        """Whether each environment is inside such a wrapper."""
        return self._ask(indices, "is_wrapped", wrapper_class)

    def get_images(self) -> Sequence[Any]:
        """What each environment renders."""
        return self.env_method("render")

    def _is_masks(self, name: str) -> bool:
        return name == MASKS and isinstance(self._envs, NativeVectorEnv | RememberingVectorEnv)

    def _ask(
        self, indices: Any, verb: str, name: Any, *arguments: Any, **keywords: Any
    ) -> list[Any]:
        numbers = [self._numbers[number] for number in self._get_indices(indices)]
        return self._members.ask(numbers, verb, name, *arguments, **keywords)


def _row(infos: Infos, row: int) -> dict[str, Any]:
    """What a vector's infos say of one environment."""
    return {
        name: _row(values, row) if isinstance(values, dict) else values[row]
        for name, values in infos.items()
        if not name.startswith("_") and infos[f"_{name}"][row]
    }


def _part(tree: Tree, row: int) -> Tree:
    return mapped(lambda array: array[row].copy(), tree)

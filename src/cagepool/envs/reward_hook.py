"""Reward functions of the user, which replace the official reward of CAGE-2."""

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from traceback import extract_tb
from typing import Any, TypeAlias, cast

import numpy as np

from cagepool._lookup import load_object
from cagepool.envs.vector_args import read_only
from cagepool.sim import dtypes
from cagepool.sim.batch import Batch, BatchConfig, TrueState
from cagepool.sim.masks import ScenarioIds
from cagepool.sim.moves import MoveArrays
from cagepool.sim.rewards import REWARD_PARTS, reward_tables
from cagepool.types import Bools, Float64s, Int64s, Records


class RewardStep:
    """What a reward function gets: one step of some games, in arrays with one row per game.

    All arrays are read-only. They are valid during the call; a function that keeps one copies it.
    """

    ids: Int64s  # indices of the games
    reward: Float64s  # the official reward
    ended: Bools  # the episode ended with this step
    true_state: TrueState  # after the step, before an autoreset
    true_state_before: TrueState  # before the step
    moves: MoveArrays
    scenario_ids: ScenarioIds  # index of each game's scenario among those of the environment

    def __init__(self, batch: Batch, before: Records, ids: Int64s) -> None:
        """Read the last step of the games `ids`."""
        after = batch.true_state[ids]
        ended = batch.truncations[ids]
        if batch.config.autoreset == "same_step":  # the games that ended have begun again
            after[ended] = batch.final_true_state[ids][ended]
        self.ids = read_only(ids)
        self.reward = read_only(batch.rewards[ids])
        self.ended = read_only(ended)
        self.true_state = TrueState(after)
        self.true_state_before = TrueState(before[ids])
        scenario_ids = read_only(batch.move_scenario_ids[ids])
        self.moves = MoveArrays(read_only(batch.moves[ids]), batch.names, scenario_ids)
        self.scenario_ids = scenario_ids
        self._true_state = after
        self._tables = reward_tables(batch.scenarios, batch.layout)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def part_tenths(self) -> Int64s:
        """Parts of the official reward in tenths, (games, 5), in the order of `REWARD_PARTS`.

        Whole numbers: `part_tenths.sum(axis=1) / 10` is `reward` to the bit.
        """
        parts = self._tables.step_part_tenths(self._true_state, self.moves.codes, self.scenario_ids)
        return read_only(parts)

    @cached_property
    def parts(self) -> dict[str, Float64s]:
        """Parts of the official reward by name: see `sim.rewards.REWARD_PARTS`."""
        return dict(zip(REWARD_PARTS, read_only(self.part_tenths / 10).T, strict=True))


RewardFunction: TypeAlias = Callable[[RewardStep], Any]
"""Returns one number per game of the step."""


class WeightedReward:
    """Reward function: the official reward with other weights of its parts."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        """Multiply the parts of the reward; a part without a weight counts as it is.

        Args:
            weights: By name of the part, see `sim.rewards.REWARD_PARTS`.
        """
        unknown = [name for name in weights if name not in REWARD_PARTS]
        if unknown:
            known = ", ".join(REWARD_PARTS)
            raise ValueError(f"reward_weights must be among {known}; got {', '.join(unknown)}")
        self._weights = np.array([float(weights.get(name, 1.0)) for name in REWARD_PARTS])
        if not np.isfinite(self._weights).all():
            raise ValueError(f"reward_weights must be finite numbers, got {dict(weights)}")

    def __call__(self, step: RewardStep) -> Float64s:
        """Weighted rewards of a step; with weights of 1, the official ones to the bit."""
        rewards: Float64s = step.part_tenths @ self._weights / 10
        return rewards


def choose_reward(
    reward: RewardFunction | str | None, weights: Mapping[str, float] | None
) -> RewardFunction | str | None:
    """The reward function of the settings `reward` and `reward_weights`."""
    if weights is None:
        return reward
    if reward is not None:
        raise ValueError("reward_weights must be None with a reward function, got both")
    return WeightedReward(weights)


def find_reward(reward: RewardFunction | str) -> RewardFunction:
    """The function, which may be given as `module:function`."""
    if not isinstance(reward, str):
        if not callable(reward):
            raise TypeError(f"reward must be a function or module:function, got {reward!r}")
        return reward
    function = load_object(reward, "reward")
    if not callable(function):
        raise ValueError(f"reward must name a function, {reward} is {function!r}")
    return cast("RewardFunction", function)


def try_reward(reward: RewardFunction | str) -> None:
    """Call the function for one step of two games."""
    batch = Batch(2, BatchConfig(autoreset="disabled"))
    hook = RewardHook(reward, batch.games)
    batch.reset(np.zeros(2, np.uint64))
    hook.before_step(batch)
    batch.step(np.zeros(2, np.int64))
    hook.after_step(batch, np.arange(2))


class RewardHook:
    """Calls a reward function after each step, checks its result and sums it over episodes."""

    def __init__(self, reward: RewardFunction | str, games: int) -> None:
        """Find the function; `games` is the size of the batch."""
        self._function = find_reward(reward)
        self.name = reward if isinstance(reward, str) else _name_of(self._function)
        self.rewards: Float64s = np.zeros(games)  # of the last step
        self.episode_returns: Float64s = np.zeros(games)  # of the last episode that ended
        self._returns: Float64s = np.zeros(games)  # of the current episode
        self._before: Records = np.zeros(0, dtypes.TRUE_STATE)

    def start(self, games: Any) -> None:
        """Begin new episodes in these games."""
        self._returns[games] = 0.0
        self.rewards[games] = 0.0

    def before_step(self, batch: Batch) -> None:
        """Keep the true state before a step."""
        if not len(self._before):
            self._before = np.zeros_like(batch.true_state)
        np.copyto(self._before, batch.true_state)

    def after_step(self, batch: Batch, played: Int64s) -> None:
        """Compute the rewards of the games that were played in a step."""
        step = RewardStep(batch, self._before, played)
        try:
            result = self._function(step)
        except Exception as error:
            raise ValueError(f"reward function {self.name} {_raised(error)}") from error
        self.rewards[played] = self._checked(result, len(played))
        self._returns[played] += self.rewards[played]
        ended = played[step.ended]
        self.episode_returns[ended] = self._returns[ended]
        self._returns[ended] = 0.0

    def _checked(self, result: Any, games: int) -> Float64s:
        wanted = f"reward function {self.name} must return an array of {games} finite numbers"
        try:
            array = np.asarray(result)
        except ValueError:  # rows of different lengths
            raise ValueError(f"{wanted}, got {type(result).__name__}") from None
        if array.dtype.kind not in "fiub":
            got = type(result).__name__ if array.dtype == object else f"type {array.dtype}"
            raise ValueError(f"{wanted}, got {got}")
        if array.shape != (games,):
            raise ValueError(f"{wanted}, got shape {array.shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{wanted}, got {array[~np.isfinite(array)][0]}")
        return array.astype(np.float64)


def _raised(error: Exception) -> str:
    """What the function raised, and where."""
    reason = f"{type(error).__name__}: {error}".rstrip(": ")
    place = extract_tb(error.__traceback__)[-1]
    return f"raised {reason} ({Path(place.filename).name}, line {place.lineno})"


def _name_of(function: RewardFunction) -> str:
    return getattr(function, "__qualname__", None) or type(function).__name__

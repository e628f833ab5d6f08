"""What a user may add to the steps of native games: a reward function, and moves in the infos."""

from typing import Any, TypedDict

import numpy as np

from cagepool.envs.reward_hook import RewardFunction, RewardHook
from cagepool.sim.batch import Batch
from cagepool.sim.moves import MoveArrays, describe_moves
from cagepool.types import Bools, Float64s, Infos, Int64s, Records


class HookSettings(TypedDict, total=False):
    """Keywords of CAGE-2 environments that add to their steps; `make_vec` documents each."""

    reward: RewardFunction | str | None
    moves: bool


class StepHooks:
    """Reward function and readable moves of a batch; environments without both have no hooks."""

    def __init__(self, batch: Batch, *, reward: RewardFunction | str | None, moves: bool) -> None:
        """Take the settings of the same names."""
        games = batch.games
        self.reward_hook = None if reward is None else RewardHook(reward, games)
        self._has_moves = moves
        self._is_played: Bools = np.zeros(games, np.bool_)  # in its last step, not reset by it
        self._is_over: Bools = np.zeros(games, np.bool_)  # the next step resets the game
        self._is_restored: Bools = np.zeros(games, np.bool_)  # it may be over or not

    def start(self, games: Any) -> None:
        """Handle a reset of these games, an index array."""
        self._is_over[games] = False
        self._is_restored[games] = False
        if self.reward_hook is not None:
            self.reward_hook.start(games)

    def restore(self, games: Int64s) -> None:
        """Handle a restore; the returns of the reward function begin anew."""
        self.start(games)
        self._is_restored[games] = True

    def before_step(self, batch: Batch) -> None:
        """Handle the beginning of a step."""
        if self.reward_hook is not None:
            self.reward_hook.before_step(batch)

    def after_step(self, batch: Batch, ids: Int64s | None = None) -> None:
        """Handle the end of a step of all games, or of the games `ids`.

        Raises:
            ValueError: the reward function failed; the step was played.
        """
        stepped = np.arange(batch.games) if ids is None else ids
        for game in stepped[self._is_restored[stepped]].tolist():
            self._is_over[game] = batch.core.steps(game) == 0 and not batch.truncations[game]
        is_reset = self._is_over[stepped]
        self._is_played[stepped] = ~is_reset
        self.start(stepped[is_reset])
        self._is_restored[stepped] = False
        if batch.config.autoreset == "next_step":
            self._is_over[stepped] = batch.truncations[stepped]
        if self.reward_hook is not None and not is_reset.all():
            self.reward_hook.after_step(batch, stepped[~is_reset])

    def rewards(self, batch: Batch) -> Float64s:
        """Rewards of the last step: those of the reward function, or the official ones."""
        return batch.rewards if self.reward_hook is None else self.reward_hook.rewards

    def add_infos(self, batch: Batch, infos: Infos, stepped: Bools) -> Infos:
        """The infos of a step with the moves of the games that it played.

        With autoreset `same_step`, moves that ended an episode are in `final_info`, as in
        SyncVectorEnv.
        """
        if not self._has_moves:
            return infos
        played = stepped & self._is_played
        if "final_info" not in infos:
            return infos | move_infos(batch.moves, played)
        ended = infos["_final_info"]
        final_info = infos["final_info"] | move_infos(batch.moves, ended)
        return infos | {"final_info": final_info} | move_infos(batch.moves, played & ~ended)


def move_infos(moves: Records, games: Bools) -> Infos:
    """Moves of these games as infos of a vector environment; empty if there are no games."""
    if not games.any():
        return {}
    infos: Infos = {}
    for name, array in MoveArrays(moves).as_dict().items():
        array[~games] = None if array.dtype == object else 0
        infos |= {name: array, f"_{name}": games.copy()}
    return {"moves": infos, "_moves": games.copy()}


def describe_last_moves(batch: Batch, game: int) -> str:
    """The moves of a game's last step in words; after an autoreset, of the last episode."""
    if batch.core.steps(game) == 0 and not batch.truncations[game]:
        return "no move yet"
    return describe_moves(batch.moves[game])

"""What a user may add to steps of native games: reward function, moves, parts of the reward."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cagepool.envs.reward_hook import RewardFunction, RewardHook, choose_reward
from cagepool.envs.settings import EnvSettings
from cagepool.sim.batch import Batch
from cagepool.sim.moves import MoveArrays, describe_moves
from cagepool.sim.rewards import REWARD_PARTS, reward_tables
from cagepool.types import Bools, Float64s, Infos, Int64s, Records


class StepHooks:
    """Reward function and further infos of a batch; environments without any have no hooks."""

    def __init__(
        self,
        batch: Batch,
        *,
        reward: RewardFunction | str | None,
        reward_parts: bool,
        moves: bool,
        action_mask: bool,
    ) -> None:
        """Take the settings of the same names."""
        games = batch.games
        self.reward_hook = None if reward is None else RewardHook(reward, games)
        self._has_parts = reward_parts
        self._has_moves = moves
        self._has_masks = action_mask
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
        """Handle the end of a step of all games, or of the games `ids`."""
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

    @classmethod
    def make(cls, batch: Batch, settings: EnvSettings) -> "StepHooks | None":
        """Hooks of these settings; none if nothing is added to steps.

        Raises:
            ValueError: the reward function or its weights are wrong.
        """
        reward = choose_reward(settings.reward, settings.reward_weights)
        infos = {name: getattr(settings, name) for name in ("reward_parts", "moves", "action_mask")}
        if reward is None and not any(infos.values()):
            return None
        return cls(batch, reward=reward, **infos)

    def add_infos(self, batch: Batch, infos: Infos, stepped: Bools) -> Infos:
        """The infos of a step with moves and parts of the reward of its games, and with masks.

        With autoreset `same_step`, those of a step that ended an episode are in `final_info`, as in
        SyncVectorEnv.
        """
        if self._has_moves or self._has_parts:
            infos = self._add_step_infos(batch, infos, stepped)
        if not self._has_masks:
            return infos
        if "final_info" in infos:
            final_info = infos["final_info"] | final_mask_infos(batch, infos["_final_info"])
            infos = infos | {"final_info": final_info}
        return infos | mask_infos(batch, stepped)

    def reset_infos(self, batch: Batch, games: Bools) -> Infos:
        """Infos of a reset of these games."""
        return mask_infos(batch, games) if self._has_masks else {}

    def _add_step_infos(self, batch: Batch, infos: Infos, stepped: Bools) -> Infos:
        played = stepped & self._is_played
        if "final_info" not in infos:
            return infos | self._step_infos(batch, batch.true_state, played)
        ended = infos["_final_info"]
        final_info = infos["final_info"] | self._step_infos(batch, batch.final_true_state, ended)
        others = self._step_infos(batch, batch.true_state, played & ~ended)
        return infos | {"final_info": final_info} | others

    def _step_infos(self, batch: Batch, true_state: Records, games: Bools) -> Infos:
        infos = move_infos(batch, games) if self._has_moves else {}
        return infos | part_infos(batch, true_state, games) if self._has_parts else infos


def episode_infos(batch: Batch, hooks: StepHooks | None, ended: Bools | None = None) -> Infos:
    """Infos of the episodes that ended in a step; of all games by default."""
    ended = batch.truncations if ended is None else ended
    infos: Infos = {}
    if batch.config.order is not None:
        counters = np.where(ended[:, None], batch.episode_counters, 0)
        infos = {"compliance": counters, "_compliance": ended.copy()}
    if hooks is not None and hooks.reward_hook is not None:
        returns = np.where(ended, batch.episode_returns, 0.0)
        infos |= {"official_return": returns, "_official_return": ended.copy()}
    return infos


def part_infos(batch: Batch, true_state: Records, games: Bools) -> Infos:
    """Parts of the reward of these games as infos; empty if there are no games.

    The true state is that after the step, before an autoreset.
    """
    if not games.any():
        return {}
    infos: Infos = {}
    for name, array in reward_part_arrays(batch, true_state).items():
        array[~games] = 0
        infos |= {name: array, f"_{name}": games.copy()}
    return {"reward_parts": infos, "_reward_parts": games.copy()}


def reward_part_arrays(batch: Batch, true_state: Records) -> dict[str, NDArray[Any]]:
    """Parts of the rewards of a step by name, and all of them as whole `tenths`, (games, 5)."""
    tables = reward_tables(batch.scenarios, batch.layout)
    tenths = tables.step_part_tenths(true_state, batch.moves, batch.move_scenario_ids)
    points = dict(zip(REWARD_PARTS, (tenths / 10).T.copy(), strict=True))
    return {**points, "tenths": tenths}


def mask_infos(batch: Batch, games: Bools) -> Infos:
    """Action masks of these games as infos of a vector environment, 0 in the other rows."""
    masks = batch.mask_tables.masks(batch.true_state["decoys"], batch.scenario_ids)
    return _mask_infos(masks, games)


def final_mask_infos(batch: Batch, ended: Bools) -> Infos:
    """The same at the end of the episodes that ended; autoreset same_step only."""
    decoys = batch.final_true_state["decoys"]
    return _mask_infos(batch.mask_tables.masks(decoys, batch.move_scenario_ids), ended)


def _mask_infos(masks: Bools, games: Bools) -> Infos:
    masks &= games[:, None]
    return {"action_mask": masks.astype(np.int8), "_action_mask": games.copy()}


def move_infos(batch: Batch, games: Bools) -> Infos:
    """Moves of these games as infos of a vector environment; empty if there are no games."""
    if not games.any():
        return {}
    infos: Infos = {}
    moves = MoveArrays(batch.moves, batch.names, batch.move_scenario_ids)
    for name, array in moves.as_dict().items():
        array[~games] = None if array.dtype == object else 0
        infos |= {name: array, f"_{name}": games.copy()}
    return {"moves": infos, "_moves": games.copy()}


def describe_last_moves(batch: Batch, game: int) -> str:
    """The moves of a game's last step in words; after an autoreset, of the last episode."""
    if batch.core.steps(game) == 0 and not batch.truncations[game]:
        return "no move yet"
    return describe_moves(batch.moves[game], batch.names, int(batch.move_scenario_ids[game]))

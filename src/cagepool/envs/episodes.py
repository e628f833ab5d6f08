"""Whole episodes, from environments that do not wait for each other."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from cagepool.envs.async_api import FreeVectorEnv, Ready
from cagepool.envs.space_tree import Tree, mapped, rows
from cagepool.types import Float64s


@dataclass(frozen=True)
class Episode:
    """One episode from its first observation to its last."""

    env: int  # index of the environment that played it
    observations: Tree  # (steps + 1, ...)
    actions: Tree  # (steps, ...)
    rewards: Float64s  # (steps,)
    terminated: bool
    truncated: bool

    def __len__(self) -> int:
        """Its steps."""
        return len(self.rewards)


def episodes(
    envs: FreeVectorEnv, policy: Callable[[Tree], Tree], n: int, *, seed: Any = None
) -> Iterator[Episode]:
    """Play exactly n episodes and give each once, in the order in which they end.

    Every environment that is ready gets its next action at once, and begins another episode as
    long as fewer than n have begun. All that begin are given, long ones too, so that the n are a
    fair sample. An episode that a restart cuts short is dropped and another one played for it.

    Args:
        envs: They are reset first, and may have steps under way when the last episode is given.
        policy: Actions for observations; as many rows as there are environments ready.
        n: How many episodes.
        seed: For the reset.

    Raises:
        ValueError: the environments do not begin episodes by themselves.
    """
    if envs.metadata["autoreset_mode"] is AutoresetMode.DISABLED:
        raise ValueError("episodes needs environments with autoreset next_step or same_step")
    if n < 1:
        return
    collector = _Collector(envs, policy, n)
    collector.begin(envs.reset(seed=seed)[0])
    while collector.missing:
        yield from collector.turn()


@dataclass
class _Record:
    """An episode as far as it has been played; empty until its first observation is there."""

    observations: list[Any] = field(default_factory=list)
    actions: list[Any] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)

    def episode(self, env: int, *, terminated: bool, truncated: bool) -> Episode:
        return Episode(
            env,
            _stacked(self.observations),
            _stacked(self.actions),
            np.array(self.rewards),
            terminated,
            truncated,
        )


class _Collector:
    def __init__(self, envs: FreeVectorEnv, policy: Callable[[Tree], Tree], n: int) -> None:
        self.missing = n  # episodes that have not ended
        self._envs = envs
        self._policy = policy
        self._unbegun = n
        self._records = [_Record() for _ in range(envs.num_envs)]
        self._resets_at_once = envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP

    def begin(self, observations: Tree) -> None:
        ids = np.arange(min(self._unbegun, self._envs.num_envs))
        self._unbegun -= len(ids)
        first = rows(observations, ids)
        for index in ids.tolist():
            self._records[index].observations.append(_row(first, index))
        self._send(first, ids)

    def turn(self) -> list[Episode]:
        """Take what is ready and send it on; returns the episodes that have ended."""
        ready = self._envs.recv()
        ended: list[Episode] = []
        going = [row for row in range(len(ready.ids)) if self._goes_on(ready, row, ended)]
        if going:
            chosen = np.array(going)
            self._send(rows(ready.observations, chosen), ready.ids[chosen])
        return ended

    def _send(self, observations: Tree, ids: Any) -> None:
        actions = self._policy(observations)
        for row, index in enumerate(ids.tolist()):
            record = self._records[index]
            if record.observations:
                record.actions.append(_row(actions, row))
        self._envs.send(actions, ids)

    def _goes_on(self, ready: Ready, row: int, ended: list[Episode]) -> bool:
        """Note a result; returns whether the environment is to be stepped again."""
        index = int(ready.ids[row])
        record = self._records[index]
        seen = _row(ready.observations, row)
        if _is_set(ready, "_restarted", row):
            self._records[index] = self._next_record(seen)
            return True
        if not record.observations:  # the step that began the episode
            record.observations.append(seen)
            return True
        terminated, truncated = bool(ready.terminations[row]), bool(ready.truncations[row])
        if not (terminated or truncated):
            record.observations.append(seen)
            record.rewards.append(float(ready.rewards[row]))
            return True
        self._records[index] = self._next_record(seen)
        record.observations.append(ready.infos["final_obs"][row] if self._resets_at_once else seen)
        record.rewards.append(float(ready.rewards[row]))
        ended.append(record.episode(index, terminated=terminated, truncated=truncated))
        self.missing -= 1
        self._unbegun -= 1
        return self._unbegun >= 0

    def _next_record(self, seen: Tree) -> _Record:
        return _Record([seen] if self._resets_at_once else [])


def _is_set(ready: Ready, mask: str, row: int) -> bool:
    return mask in ready.infos and bool(ready.infos[mask][row])


def _row(tree: Tree, row: int) -> Tree:
    return mapped(lambda array: array[row], tree)


def _stacked(trees: list[Tree]) -> Tree:
    return mapped(lambda *arrays: np.stack(arrays), *trees)

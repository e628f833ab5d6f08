"""Asynchronous stepping: `send` and `recv` without a barrier, and whole episodes."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import ArrayLike

from cagepool.envs.spaces import Tree, map_tree, take_rows
from cagepool.types import Bools, Float64s, Infos, Int64s


class Ready(NamedTuple):
    """Results of environments that are ready; row k of every array is of environment `ids[k]`."""

    ids: Int64s
    observations: Tree
    rewards: Float64s
    terminations: Bools
    truncations: Bools
    infos: Infos  # in Gymnasium's form, with one entry per row


class SendRecvVectorEnv(Protocol):
    """A vector environment that can be stepped without a barrier."""

    num_envs: int
    metadata: dict[str, Any]

    def reset(
        self, *, seed: Any = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, Infos]:
        """Start new episodes in all environments."""

    def send(self, actions: Any, ids: ArrayLike | None = None) -> None:
        """Start a step of some environments."""

    def recv(self, min_ready: int = 1) -> Ready:
        """Return the results of the environments that are ready, at least `min_ready`."""


@dataclass(frozen=True)
class Episode:
    """One episode from its first observation to its last."""

    env: int  # index of the environment
    observations: Tree  # (steps + 1, ...)
    actions: Tree  # (steps, ...)
    rewards: Float64s  # (steps,)
    terminated: bool
    truncated: bool

    def __len__(self) -> int:
        """Number of steps."""
        return len(self.rewards)


def episodes(
    envs: SendRecvVectorEnv, policy: Callable[[Tree], Tree], n: int, *, seed: Any = None
) -> Iterator[Episode]:
    """Play exactly n episodes and yield each when it ends.

    Every environment that is ready gets its next action at once, and starts another episode as
    long as fewer than n have started. Every episode that starts is yielded, so the n episodes are
    not biased toward short ones. An episode cut short by a restart is dropped and replaced.

    Args:
        envs: They are reset first, and may have pending steps after the last episode.
        policy: Maps observations to actions; one row per environment that is ready.
        n: Number of episodes.
        seed: Of the reset.

    Raises:
        ValueError: the environments do not start episodes by themselves.
    """
    if envs.metadata["autoreset_mode"] is AutoresetMode.DISABLED:
        raise ValueError("episodes needs environments with autoreset next_step or same_step")
    if n < 1:
        return
    collector = _EpisodeCollector(envs, policy, n)
    collector.start(envs.reset(seed=seed)[0])
    while collector.remaining:
        yield from collector.collect()


@dataclass
class _EpisodeBuffer:
    """Steps of an episode that has not ended; empty until its first observation arrives."""

    observations: list[Any] = field(default_factory=list)
    actions: list[Any] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)

    def to_episode(self, env: int, *, terminated: bool, truncated: bool) -> Episode:
        return Episode(
            env,
            _stack(self.observations),
            _stack(self.actions),
            np.array(self.rewards),
            terminated,
            truncated,
        )


class _EpisodeCollector:
    def __init__(self, envs: SendRecvVectorEnv, policy: Callable[[Tree], Tree], n: int) -> None:
        self.remaining = n  # episodes that have not ended
        self._envs = envs
        self._policy = policy
        self._not_started = n
        self._buffers = [_EpisodeBuffer() for _ in range(envs.num_envs)]
        self._same_step = envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP

    def start(self, observations: Tree) -> None:
        """Send the first actions, in at most n environments."""
        ids = np.arange(min(self._not_started, self._envs.num_envs))
        self._not_started -= len(ids)
        first = take_rows(observations, ids)
        for env in ids.tolist():
            self._buffers[env].observations.append(_row(first, env))
        self._send(first, ids)

    def collect(self) -> list[Episode]:
        """Receive the environments that are ready and send them again; returns ended episodes."""
        ready = self._envs.recv()
        ended: list[Episode] = []
        rows = [row for row in range(len(ready.ids)) if self._store(ready, row, ended)]
        if rows:
            self._send(take_rows(ready.observations, np.array(rows)), ready.ids[rows])
        return ended

    def _send(self, observations: Tree, ids: Any) -> None:
        actions = self._policy(observations)
        for row, env in enumerate(ids.tolist()):
            buffer = self._buffers[env]
            if buffer.observations:
                buffer.actions.append(_row(actions, row))
        self._envs.send(actions, ids)

    def _store(self, ready: Ready, row: int, ended: list[Episode]) -> bool:
        """Store one result; returns whether the environment is to be stepped again."""
        env = int(ready.ids[row])
        buffer = self._buffers[env]
        observation = _row(ready.observations, row)
        if _is_set(ready, "_restarted", row):
            self._buffers[env] = self._new_buffer(observation)
            return True
        if not buffer.observations:  # with next_step, the step that started the episode
            buffer.observations.append(observation)
            return True
        terminated, truncated = bool(ready.terminations[row]), bool(ready.truncations[row])
        buffer.rewards.append(float(ready.rewards[row]))
        if not (terminated or truncated):
            buffer.observations.append(observation)
            return True
        self._buffers[env] = self._new_buffer(observation)
        final = ready.infos["final_obs"][row] if self._same_step else observation
        buffer.observations.append(final)
        ended.append(buffer.to_episode(env, terminated=terminated, truncated=truncated))
        self.remaining -= 1
        self._not_started -= 1
        return self._not_started >= 0

    def _new_buffer(self, observation: Tree) -> _EpisodeBuffer:
        return _EpisodeBuffer([observation] if self._same_step else [])


def _is_set(ready: Ready, mask: str, row: int) -> bool:
    return mask in ready.infos and bool(ready.infos[mask][row])


def _row(tree: Tree, row: int) -> Tree:
    return map_tree(lambda array: array[row], tree)


def _stack(trees: list[Tree]) -> Tree:
    return map_tree(lambda *arrays: np.stack(arrays), *trees)

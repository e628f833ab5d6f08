"""Playing: one forward pass a step, straight into the rollout's arrays."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch

from cagepool import _core
from cagepool._stages import stage
from cagepool.envs.make import AnyVectorEnv
from cagepool.sim.compliance import ComplianceTracker
from cagepool.sim.features import FeatureEncoder
from cagepool.train.passes import Forward
from cagepool.train.rollout_buffer import Final, Rollout
from cagepool.types import Bools, Bytes, Float32s, Int64s


class Inputs(Protocol):
    """Turns observations into policy inputs, and choices into actions."""

    size: int
    n_choices: int
    action_indices: Int64s  # action of each choice

    def reset(self, ids: Int64s, /) -> None:
        """Forget the past of these games."""

    def update(self, played: Int64s, observations: Float32s, /) -> None:
        """Take note of what was played and of what was seen next."""

    def encode(self, observations: Float32s, inputs: Float32s, masks: Bytes | None, /) -> None:
        """Write the inputs and masks as they now stand."""


class PlainInputs:
    """Observations as they are, and every action."""

    def __init__(self, size: int, choices: int) -> None:
        """For observations of this many values."""
        self.size = size
        self.n_choices = choices
        self.action_indices = np.arange(choices)

    def reset(self, _ids: Int64s) -> None:
        """Nothing to forget."""

    def update(self, _played: Int64s, _observations: Float32s) -> None:
        """Nothing to remember."""

    def encode(self, observations: Float32s, inputs: Float32s, _masks: Bytes | None) -> None:
        """Copy the observations."""
        inputs[:] = observations.reshape(len(observations), -1)


@dataclass
class Finished:
    """Episodes that ended while a rollout was collected."""

    returns: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    counters: Int64s = field(  # (episode, COUNTER_COUNT), no rows without an order
        default_factory=lambda: np.zeros((0, _core.COUNTER_COUNT), np.int64)
    )


class Collector:
    """Plays environments with a policy until exactly `total` episodes are over.

    An environment that ends an episode begins another only while episodes are left to begin; what
    it plays after that is not counted.
    """

    def __init__(self, envs: AnyVectorEnv, inputs: Inputs, total: int, reward_scale: float) -> None:
        """Take environments that reset themselves in the step in which they end."""
        games = envs.num_envs
        self.envs = envs
        self.inputs = inputs
        self.total = total
        self.begun = min(games, total)
        self.done = 0
        self.played_steps = 0
        self.active: Bools = np.arange(games) < total
        self.returns = np.zeros(games)
        self.lengths = np.zeros(games, np.int64)
        self._reward_scale = reward_scale
        self._actions: Int64s = np.zeros(games, np.int64)
        self.order_rng: np.random.Generator | None = None  # none: orders stay as they are
        self.tracker: ComplianceTracker | None = None  # of games that are not the core's
        self._has_order = len(getattr(envs, "counters", ())) > 0

    def draw_orders(self, rng: np.random.Generator) -> None:
        """Let every episode be played to an order of its own, from the first ones on."""
        self.order_rng = rng
        self._begin_orders(np.arange(self.envs.num_envs))

    @property
    def is_over(self) -> bool:
        """Whether all episodes have been played."""
        return self.done == self.total

    def start(self, seed: int, rollout: Rollout) -> None:
        """Reset the environments and write the first inputs."""
        observations, _ = self.envs.reset(seed=seed)
        self.write(observations, rollout, 0)

    def write(self, observations: Any, rollout: Rollout, step: int) -> None:
        """Write the inputs of a step."""
        masks = None if rollout.masks is None else rollout.masks[step]
        self.inputs.encode(_floats(observations), rollout.inputs[step], masks)

    def collect(self, actor: Forward, rollout: Rollout, rng: np.random.Generator) -> Finished:
        """Fill the rollout, or its beginning if the run's last episode ends before."""
        finished = Finished()
        uniforms = rng.random(rollout.rewards.shape, np.float32)
        with torch.inference_mode():
            for step in range(rollout.shape.steps):
                rollout.counted[step] = self.active
                self._choose(actor, rollout, step, uniforms[step])
                self._play(rollout, step, finished)
                rollout.steps = step + 1
                if self.is_over:
                    break
        return finished

    def _choose(self, actor: Forward, rollout: Rollout, step: int, uniforms: Float32s) -> None:
        with stage("policy_forward"):
            logits = actor.run(torch.from_numpy(rollout.inputs[step])).numpy()
        masks = None if rollout.masks is None else rollout.masks[step]
        choices = rollout.choices[step]
        with stage("sampling"):
            _core.sample_choices(logits, masks, uniforms, choices, rollout.log_probabilities[step])
            np.take(self.inputs.action_indices, choices, out=self._actions)

    def _play(self, rollout: Rollout, step: int, finished: Finished) -> None:
        if self.tracker is not None:
            with stage("compliance"):
                self.tracker.update(self.envs.true_state, self._actions)  # type: ignore[attr-defined]
        with stage("env_step"):
            observations, rewards, terminations, truncations, infos = self.envs.step(self._actions)
        self.returns += rewards
        self.lengths += 1
        if self._has_order:
            rewards = rewards + self.envs.alignment  # type: ignore[attr-defined] # native only
        elif self.tracker is not None:
            rewards = rewards + self.tracker.alignment
        np.multiply(rewards, self._reward_scale, out=rollout.rewards[step], casting="same_kind")
        ends = rollout.ends[step]
        np.logical_or(terminations, truncations, out=ends)
        seen = _floats(observations)
        if ends.any():
            seen = self._end(rollout, step, seen, infos, truncations & ~terminations)
            self._account(np.flatnonzero(ends), finished)
        else:
            self.inputs.update(self._actions, seen)
        self.write(seen, rollout, step + 1)

    def _end(
        self, rollout: Rollout, step: int, seen: Float32s, infos: Any, cut_off: Bools
    ) -> Float32s:
        """Keep the last states of what was cut off, and begin new episodes; returns their start."""
        ended = np.flatnonzero(rollout.ends[step])
        last = seen.copy()
        for game in ended:
            last[game] = _floats(infos["final_obs"][game])
        self.inputs.update(self._actions, last)
        if cut_off.any():
            rows = np.empty((len(seen), self.inputs.size), np.float32)
            self.inputs.encode(last, rows, None)
            games = np.flatnonzero(cut_off)
            rollout.finals.append(Final(step, games, rows[games]))
        self.inputs.reset(ended)
        if self.order_rng is not None:
            self._begin_orders(ended)
        return seen

    def _begin_orders(self, games: Int64s) -> None:
        assert self.order_rng is not None
        assert isinstance(self.inputs, FeatureEncoder)
        drawn = self.order_rng.integers(_core.ORDER_COUNT, size=len(games), dtype=np.uint8)
        self.envs.batch.orders[games] = drawn  # type: ignore[attr-defined] # native only
        self.inputs.history[games, _core.HISTORY_ORDER_OFFSET] = drawn

    def _kept(self, ended: Int64s) -> Int64s:
        """Counters of the episodes that ended and count; no rows without an order."""
        is_counted = self.active[ended]
        if self.tracker is not None:
            return self.tracker.end_episodes(ended)[is_counted].astype(np.int64)
        if self._has_order:
            of_batch = self.envs.batch.episode_counters  # type: ignore[attr-defined]
            return of_batch[ended[is_counted]]  # type: ignore[no-any-return]
        return np.zeros((0, _core.COUNTER_COUNT), np.int64)

    def _account(self, ended: Int64s, finished: Finished) -> None:
        counted = ended[self.active[ended]]
        finished.returns += self.returns[counted].tolist()
        finished.lengths += self.lengths[counted].tolist()
        finished.counters = np.concatenate([finished.counters, self._kept(ended)])
        self.played_steps += int(self.lengths[counted].sum())
        self.done += len(counted)
        going_on = min(len(counted), self.total - self.begun)
        self.begun += going_on
        self.active[counted[going_on:]] = False
        self.returns[ended] = 0
        self.lengths[ended] = 0


def _floats(observations: Any) -> Float32s:
    return np.ascontiguousarray(observations, np.float32)


__all__ = ["Collector", "FeatureEncoder", "Finished", "Inputs", "PlainInputs"]

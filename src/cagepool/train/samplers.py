"""Samplers fill rollouts: one for native games, one for all other Gymnasium environments."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cagepool import _core
from cagepool._stages import divide_time, stage
from cagepool.envs.native import NativeVectorEnv
from cagepool.envs.vector_args import AnyVectorEnv
from cagepool.sim import dtypes
from cagepool.sim.compliance import ComplianceTracker
from cagepool.sim.encoder import FeatureEncoder
from cagepool.train.rollout import (
    Actor,
    Encoder,
    FinishedEpisodes,
    Rollout,
    State,
    Truncation,
)
from cagepool.types import Arrays, Bools, Bytes, Float32s, Infos, Int64s


class ObservationEncoder:
    """Flattened observations as features, and every action of the environment."""

    def __init__(self, size: int, actions: int) -> None:
        """For observations with this many values."""
        self.size = size
        self.n_choices = actions
        self.action_indices = np.arange(actions)

    def reset(self, _ids: Int64s) -> None:
        """Do nothing: there is no history."""

    def update(self, _actions: Int64s, _observations: Float32s) -> None:
        """Do nothing: there is no history."""

    def encode(self, observations: Float32s, features: Float32s, _masks: Bytes | None) -> None:
        """Copy the observations."""
        features[:] = observations.reshape(len(observations), -1)


class EnvSampler:
    """Steps environments with a policy until exactly `total_episodes` have ended.

    An environment whose episode ends starts another only while the run has episodes left to start;
    its later steps are not counted.
    """

    restores_episodes = False
    """Whether `restore` continues unfinished episodes instead of starting new ones."""

    def __init__(
        self,
        envs: AnyVectorEnv,
        encoder: Encoder,
        total_episodes: int,
        reward_scale: float,
        rng: np.random.Generator,
    ) -> None:
        """Take environments with same-step autoreset; `rng` samples the actions."""
        n_envs = envs.num_envs
        self.envs = envs
        self.encoder = encoder
        self.total_episodes = total_episodes
        self.started_episodes = min(n_envs, total_episodes)
        self.ended_episodes = 0
        self.episode_steps = 0  # of the episodes that ended
        self.tracker: ComplianceTracker | None = None  # compliance outside the core
        self.has_reward_function = False  # the environments return rewards of the user's function
        self._rng = rng
        self._reward_scale = reward_scale
        self._active: Bools = np.arange(n_envs) < total_episodes
        self._returns = np.zeros(n_envs)
        self._lengths = np.zeros(n_envs, np.int64)
        self._reward_weights: Float32s | None = None  # by step of the episode
        self._env_actions: Int64s = np.zeros(n_envs, np.int64)

    @property
    def is_finished(self) -> bool:
        """Whether all episodes have ended."""
        return self.ended_episodes == self.total_episodes

    def weight_rewards(self, lengths: Sequence[int]) -> None:
        """Count every reward once per length that is still running; the longest ends the value."""
        steps = np.arange(max(lengths))
        self._reward_weights = np.sum([steps < length for length in lengths], 0, np.float32)

    def reset(self, seed: int, rollout: Rollout) -> None:
        """Reset the environments and write the first features."""
        observations, _ = self.envs.reset(seed=seed)
        self.encoder.reset(np.arange(self.envs.num_envs))
        self._encode(_as_floats(observations), rollout, 0)

    def collect(self, actor: Actor, rollout: Rollout) -> FinishedEpisodes:
        """Fill the rollout, or its first rows if the run's last episode ends earlier."""
        finished = FinishedEpisodes()
        rollout.initial_state = None if actor.state is None else actor.state.copy()
        uniforms = self._rng.random(rollout.rewards.shape, np.float32)
        while rollout.steps < rollout.shape.steps and not self.is_finished:
            rollout.steps += self._play(actor, rollout, uniforms, finished)
        return finished

    def state(self) -> tuple[Arrays, State]:
        """Arrays and JSON values that `restore` needs."""
        return {}, {
            "episodes": self.ended_episodes,
            "steps": self.episode_steps,
            "choice_rng": self._rng.bit_generator.state,
        }

    def restore(self, _arrays: Arrays, state: State, rollout: Rollout) -> None:
        """Continue from a saved state and write the first features to the rollout.

        The environments restart their unfinished episodes with a new seed.
        """
        self._restore_counts(state)
        left = self.total_episodes - self.ended_episodes
        self.started_episodes = self.ended_episodes + min(self.envs.num_envs, left)
        self._active[:] = np.arange(self.envs.num_envs) < left
        self.reset(int(self._rng.integers(2**32)), rollout)

    def _restore_counts(self, state: State) -> None:
        self._rng.bit_generator.state = state["choice_rng"]
        self.ended_episodes = state["episodes"]
        self.episode_steps = state["steps"]

    def _play(
        self, actor: Actor, rollout: Rollout, uniforms: Float32s, finished: FinishedEpisodes
    ) -> int:
        """Play one step, or several; returns their number."""
        step = rollout.steps
        rollout.counted[step] = self._active
        masks = None if rollout.action_masks is None else rollout.action_masks[step]
        actions = rollout.actions[step]
        actor.sample(
            rollout.features[step], masks, uniforms[step], actions, rollout.log_probs[step]
        )
        # All actions are in range; `clip` only saves a copy, which NumPy makes to raise errors.
        self.encoder.action_indices.take(actions, out=self._env_actions, mode="clip")
        self._step_envs(rollout, step, finished)
        if actor.state is not None:
            actor.reset(np.flatnonzero(rollout.dones[step]))
        return 1

    def _step_envs(self, rollout: Rollout, step: int, finished: FinishedEpisodes) -> None:
        if self.tracker is not None:
            with stage("compliance"):
                self.tracker.update(self.envs.true_state, self._env_actions)  # type: ignore[attr-defined]
        with stage("env_step"):
            observations, rewards, terminations, truncations, infos = self.envs.step(
                self._env_actions
            )
        self._returns += rewards
        alignment = self._alignment()
        if alignment is not None:
            rewards = rewards + alignment
        if self._reward_weights is not None:
            rewards = rewards * self._reward_weights[self._lengths]
        self._lengths += 1
        np.multiply(rewards, self._reward_scale, out=rollout.rewards[step], casting="same_kind")
        dones = rollout.dones[step]
        np.logical_or(terminations, truncations, out=dones)
        observed = _as_floats(observations)
        if np.count_nonzero(dones):  # faster than `any`
            has_next_value = self._reward_weights is None
            truncated = truncations & ~terminations & has_next_value
            self._end_episodes(rollout, step, observed, infos["final_obs"], truncated)
            self._count_episodes(np.flatnonzero(dones), infos, finished)
        else:
            self.encoder.update(self._env_actions, observed)
        self._encode(observed, rollout, step + 1)

    def _alignment(self) -> NDArray[np.float64] | None:
        """Alignment reward of the last step; None without an order."""
        return None if self.tracker is None else self.tracker.alignment

    def _encode(self, observations: Float32s, rollout: Rollout, step: int) -> None:
        masks = None if rollout.action_masks is None else rollout.action_masks[step]
        self.encoder.encode(observations, rollout.features[step], masks)

    def _end_episodes(
        self, rollout: Rollout, step: int, observed: Float32s, final_obs: Any, truncated: Bools
    ) -> None:
        """Store the last states of truncated episodes and clear the histories of all that ended."""
        ended = np.flatnonzero(rollout.dones[step])
        last = observed.copy()
        for env in ended:
            last[env] = _as_floats(final_obs[env])
        self.encoder.update(self._env_actions, last)
        if truncated.any():
            features = np.empty((len(last), self.encoder.size), np.float32)
            self.encoder.encode(last, features, None)
            ids = np.flatnonzero(truncated)
            seen = self._final_critic_features(features, rollout.shape.critic_features)
            rollout.truncations.append(
                Truncation(step, ids, features[ids], None if seen is None else seen[ids])
            )
        self.encoder.reset(ended)

    def _final_critic_features(self, _features: Float32s, _size: int) -> Float32s | None:
        """Inputs of the critic in the last states; None: those of the actor."""
        return None

    def _count_episodes(self, ended: Int64s, infos: Infos, finished: FinishedEpisodes) -> None:
        counted = ended[self._active[ended]]
        returns = self._returns
        if self.has_reward_function:
            finished.shaped_returns += returns[counted].tolist()
            returns = infos["final_info"]["official_return"]
        finished.returns += returns[counted].tolist()
        finished.lengths += self._lengths[counted].tolist()
        finished.counters = np.concatenate([finished.counters, self._compliance_counters(ended)])
        self.episode_steps += int(self._lengths[counted].sum())
        self.ended_episodes += len(counted)
        restarted = min(len(counted), self.total_episodes - self.started_episodes)
        self.started_episodes += restarted
        self._active[counted[restarted:]] = False
        self._returns[ended] = 0
        self._lengths[ended] = 0

    def _compliance_counters(self, ended: Int64s) -> Int64s:
        """Compliance counters of the counted episodes that ended; no rows without an order."""
        if self.tracker is None:
            return np.zeros((0, _core.COUNTER_COUNT), np.int64)
        return self.tracker.end_episodes(ended)[self._active[ended]].astype(np.int64)


class NativeSampler(EnvSampler):
    """Plays native games: MLPs in the core, all steps up to the next end of an episode in one call.

    Ends of episodes, PyTorch's networks and rewards of the user's function take single steps.
    """

    envs: NativeVectorEnv
    encoder: FeatureEncoder
    restores_episodes = True
    _order_rng: np.random.Generator | None = None  # None: the orders stay as they are

    def draw_orders(self, rng: np.random.Generator) -> None:
        """Draw a workflow order per episode, from the first episodes on."""
        self._order_rng = rng
        self._start_orders(np.arange(self.envs.num_envs))

    def state(self) -> tuple[Arrays, State]:
        """Arrays and JSON values that `restore` needs."""
        arrays, state = super().state()
        games = self.envs.save(np.arange(self.envs.num_envs))
        arrays |= {
            "returns": self._returns.copy(),
            "lengths": self._lengths.copy(),
            "active": self._active.copy(),
            "games": np.frombuffer(b"".join(games), np.uint8),
            "game_sizes": np.array([len(game) for game in games]),
            **self.encoder.state(),
        }
        state["begun"] = self.started_episodes
        if self._order_rng is not None:
            state["order_rng"] = self._order_rng.bit_generator.state
        return {f"collector.{name}": array for name, array in arrays.items()}, state

    def restore(self, arrays: Arrays, state: State, rollout: Rollout) -> None:
        """Continue from a saved state and write the first features to the rollout."""
        self._restore_counts(state)
        self.started_episodes = state["begun"]
        if self._order_rng is not None:
            self._order_rng.bit_generator.state = state["order_rng"]
        saved = {name.removeprefix("collector."): array for name, array in arrays.items()}
        self._returns[:] = saved["returns"]
        self._lengths[:] = saved["lengths"]
        self._active[:] = saved["active"]
        bounds = np.cumsum(saved["game_sizes"])[:-1]
        games = [game.tobytes() for game in np.split(saved["games"], bounds)]
        if len(games) != self.envs.num_envs:
            raise ValueError(f"there must be {self.envs.num_envs} saved games, got {len(games)}")
        self.envs.restore(np.arange(len(games)), games)
        self.encoder.restore(saved)
        self._encode(_as_floats(self.envs.observations), rollout, 0)

    def _play(
        self, actor: Actor, rollout: Rollout, uniforms: Float32s, finished: FinishedEpisodes
    ) -> int:
        """Play the steps before the next end of an episode in the core, or one step."""
        left = int(np.min(self.envs.batch.config.max_steps)) - int(self._lengths.max()) - 1
        steps = min(rollout.shape.steps - rollout.steps, left)
        if actor.core_policy is None or self.has_reward_function or steps < 1:
            return super()._play(actor, rollout, uniforms, finished)
        first, end = rollout.steps, rollout.steps + steps
        rollout.counted[first:end] = self._active
        rollout.dones[first:end] = False
        start = time.perf_counter()
        times = self.envs.batch.core.play_rollout(
            actor=actor.core_policy.actor,
            parameters=actor.core_policy.parameters,
            encoder=self.encoder.core,
            belief=None if self.encoder.belief is None else self.encoder.belief.core,
            steps=steps,
            uniforms=uniforms[first:end].reshape(-1),
            features=_state_rows(rollout.features, first, end),
            masks=_state_rows(rollout.action_masks, first, end),
            critic_features=_state_rows(rollout.critic_features, first, end),
            chosen=rollout.actions[first:end].reshape(-1),
            log_probabilities=rollout.log_probs[first:end].reshape(-1),
            rewards=rollout.rewards[first:end].reshape(-1),
            histories=dtypes.as_bytes(self.encoder.history),
            returns=self._returns,
            lengths=self._lengths,
            reward_weights=self._reward_weights,
            reward_scale=self._reward_scale,
        )
        policy, games, _ = (nanoseconds / sum(times) for nanoseconds in times)
        seconds = time.perf_counter() - start
        divide_time(seconds, {"policy_forward": policy, "env_step": games}, steps)
        return steps

    def _alignment(self) -> NDArray[np.float64] | None:
        return self.envs.alignment if self._has_order else None

    def _encode(self, observations: Float32s, rollout: Rollout, step: int) -> None:
        super()._encode(observations, rollout, step)
        if rollout.critic_features is not None:
            self.envs.batch.core.write_critic_features(
                rollout.features[step], rollout.critic_features[step], final=False
            )

    def _final_critic_features(self, features: Float32s, size: int) -> Float32s | None:
        if not size:
            return None
        rows = np.empty((len(features), size), np.float32)
        self.envs.batch.core.write_critic_features(features, rows, final=True)
        return rows

    def _end_episodes(
        self, rollout: Rollout, step: int, observed: Float32s, final_obs: Any, truncated: Bools
    ) -> None:
        super()._end_episodes(rollout, step, observed, final_obs, truncated)
        if self._order_rng is not None:
            self._start_orders(np.flatnonzero(rollout.dones[step]))

    def _start_orders(self, env_ids: Int64s) -> None:
        assert self._order_rng is not None
        drawn = self._order_rng.integers(_core.ORDER_COUNT, size=len(env_ids), dtype=np.uint8)
        self.envs.batch.orders[env_ids] = drawn
        self.encoder.set_order(drawn, env_ids)

    @property
    def _has_order(self) -> bool:
        return len(self.envs.counters) > 0

    def _compliance_counters(self, ended: Int64s) -> Int64s:
        if not self._has_order:
            return super()._compliance_counters(ended)
        return self.envs.batch.episode_counters[ended[self._active[ended]]].astype(np.int64)


def _state_rows(array: NDArray[Any] | None, first: int, end: int) -> Any:
    """The rows of all environments before each step and after the last, without their shape."""
    return None if array is None else array[first : end + 1].reshape(-1, array.shape[-1])


def _as_floats(observations: Any) -> Float32s:
    return np.ascontiguousarray(observations, np.float32)

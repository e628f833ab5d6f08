"""Rollouts: the buffer, and the loop that steps the environments with the policy."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cagepool import _core
from cagepool._stages import is_recording, stage
from cagepool.envs.make import AnyVectorEnv
from cagepool.envs.native import NativeVectorEnv
from cagepool.sim.compliance import ComplianceTracker
from cagepool.sim.features import FeatureEncoder
from cagepool.sim.host_features import HostFeatureEncoder
from cagepool.types import Arrays, Bools, Bytes, Float32s, HostBlocks, Infos, Int64s

State: TypeAlias = dict[str, Any]  # JSON values of a checkpoint, beside its arrays


@dataclass(frozen=True)
class RolloutShape:
    """Sizes of a rollout buffer."""

    steps: int
    n_envs: int
    features: int
    actions: int
    masked: bool  # whether it holds action masks
    critic_features: int = 0  # 0: the critic sees `features`
    hosts: HostBlocks | None = None  # of the features; None: they are not made of hosts


class Rollout:
    """Rollout buffer: row t holds the features before step t, the action, and its results.

    `features`, `critic_features` and `action_masks` have one more row, for the states after the
    last step.
    """

    def __init__(self, shape: RolloutShape) -> None:
        """Allocate the arrays."""
        cells = (shape.steps, shape.n_envs)
        states = (shape.steps + 1, shape.n_envs)
        self.shape = shape
        self.features: Float32s = np.zeros((*states, shape.features), np.float32)
        self.critic_features: Float32s | None = (  # None: the critic sees `features`
            np.zeros((*states, shape.critic_features), np.float32)
            if shape.critic_features
            else None
        )
        self.action_masks: Bytes | None = (
            np.ones((*states, shape.actions), np.uint8) if shape.masked else None
        )
        self.actions: Int64s = np.zeros(cells, np.int64)  # indices into the action set
        self.log_probs: Float32s = np.zeros(cells, np.float32)
        self.rewards: Float32s = np.zeros(cells, np.float32)
        self.dones: Bools = np.zeros(cells, np.bool_)  # the episode ended with this step
        self.counted: Bools = np.ones(cells, np.bool_)  # the step belongs to the run's episodes
        self.truncations: list[Truncation] = []
        # Of a recurrent policy before the first step, (environments, state size).
        self.initial_state: Float32s | None = None
        self.steps = 0  # rows that are filled

    def restart(self, last: "Rollout | None" = None) -> None:
        """Empty the buffer; its first states are the last ones of `last`, or of itself."""
        source = last or self
        self.features[0] = source.features[source.steps]
        if self.critic_features is not None and source.critic_features is not None:
            self.critic_features[0] = source.critic_features[source.steps]
        if self.action_masks is not None and source.action_masks is not None:
            self.action_masks[0] = source.action_masks[source.steps]
        self.truncations.clear()
        self.steps = 0


@dataclass(frozen=True)
class Truncation:
    """Last states of the episodes that hit their time limit in one step."""

    step: int
    env_ids: Int64s
    features: Float32s  # (env_ids, features)
    critic_features: Float32s | None = None  # (env_ids, critic features); None: `features`


@dataclass
class FinishedEpisodes:
    """Episodes that ended during a rollout."""

    returns: list[float] = field(default_factory=list)  # of the official reward
    shaped_returns: list[float] = field(default_factory=list)  # only with a reward function
    lengths: list[int] = field(default_factory=list)
    counters: Int64s = field(  # of compliance, (episode, COUNTER_COUNT); no rows without an order
        default_factory=lambda: np.zeros((0, _core.COUNTER_COUNT), np.int64)
    )


class Encoder(Protocol):
    """Turns observations into policy features, and policy actions into environment actions."""

    size: int
    n_choices: int
    action_indices: Int64s  # environment action per policy action

    def reset(self, ids: Int64s, /) -> None:
        """Clear the history of these environments."""

    def update(self, actions: Int64s, observations: Float32s, /) -> None:
        """Add the actions and the observations that followed to the histories."""

    def encode(self, observations: Float32s, features: Float32s, masks: Bytes | None, /) -> None:
        """Write features and action masks."""


class CorePolicy(NamedTuple):
    """Network and parameters of an actor that the core can play with."""

    actor: _core.MlpActor
    parameters: Float32s


class Actor(Protocol):
    """Policy that samples the actions of a rollout, with its own copy of a learner's weights."""

    @property
    def core_policy(self) -> CorePolicy | None:
        """What the core needs to play several steps in one call; None: it cannot."""

    @property
    def state(self) -> Float32s | None:
        """Recurrent state, (environments, state size); None if the policy has none."""

    def load_state(self, state: Float32s, /) -> None:
        """Set the recurrent state."""

    def weights(self) -> Arrays:
        """Weights by name, as `load_weights` takes them."""

    def load_weights(self, weights: Arrays, /) -> None:
        """Copy the weights of a learner."""

    def logits(self, features: Float32s, masks: Bytes | None, /) -> Float32s:
        """Logits of the actions before masking; the next call may overwrite them."""

    def sample(
        self,
        features: Float32s,
        masks: Bytes | None,
        uniforms: Float32s,
        actions: Int64s,
        log_probs: Float32s,
        /,
    ) -> None:
        """Write one action per environment and its log probability; advances the state.

        Args:
            features: (environments, features).
            masks: Allowed actions, (environments, actions).
            uniforms: Random numbers in [0, 1), (environments,).
            actions: Is filled with the actions.
            log_probs: Is filled with their log probabilities.
        """

    def reset(self, env_ids: Int64s, /) -> None:
        """Clear the recurrent state of environments whose episode ended."""

    def close(self) -> None:
        """Stop the threads."""


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
        self._order_rng: np.random.Generator | None = None  # none: the orders stay as they are
        self._reward_scale = reward_scale
        self._active: Bools = np.arange(n_envs) < total_episodes
        self._returns = np.zeros(n_envs)
        self._lengths = np.zeros(n_envs, np.int64)
        self._reward_weights: Float32s | None = None  # by step of the episode
        self._env_actions: Int64s = np.zeros(n_envs, np.int64)
        self._has_order = len(getattr(envs, "counters", ())) > 0  # counted by the core

    @property
    def is_finished(self) -> bool:
        """Whether all episodes have ended."""
        return self.ended_episodes == self.total_episodes

    @property
    def restores_episodes(self) -> bool:
        """Whether `restore` continues unfinished episodes instead of starting new ones."""
        return isinstance(self.envs, NativeVectorEnv)

    def weight_rewards(self, lengths: Sequence[int]) -> None:
        """Count every reward once per length that is still running; the longest ends the value."""
        steps = np.arange(max(lengths))
        self._reward_weights = np.sum([steps < length for length in lengths], 0, np.float32)

    def draw_orders(self, rng: np.random.Generator) -> None:
        """Draw a workflow order per episode, from the first episodes on."""
        self._order_rng = rng
        self._start_orders(np.arange(self.envs.num_envs))

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
            step = rollout.steps
            rollout.steps += self._play_core(actor, rollout, uniforms)
            if rollout.steps > step:
                continue
            rollout.counted[step] = self._active
            self._sample_actions(actor, rollout, step, uniforms[step])
            self._step_envs(rollout, step, finished)
            rollout.steps = step + 1
            if actor.state is not None:
                actor.reset(np.flatnonzero(rollout.dones[step]))
        return finished

    def _play_core(self, actor: Actor, rollout: Rollout, uniforms: Float32s) -> int:
        """Play the steps before the next end of an episode in the core; returns their number.

        It is 0 where the core cannot play: other environments or networks, beliefs, rewards of the
        user's function. A recorded profile needs single steps, to tell their parts apart.
        """
        step = rollout.steps
        policy = actor.core_policy
        core = self.envs.batch.core if isinstance(self.envs, NativeVectorEnv) else None
        if (
            policy is None
            or not isinstance(self.encoder, FeatureEncoder)
            or not isinstance(self.envs, NativeVectorEnv)
            or not isinstance(core, _core.Batch)
            or self.encoder.belief is not None
            or self.has_reward_function
            or is_recording()
        ):
            return 0
        left = int(np.min(self.envs.batch.config.max_steps)) - int(self._lengths.max()) - 1
        steps = min(rollout.shape.steps - step, left)
        if steps < 1:
            return 0
        end = step + steps
        rollout.counted[step:end] = self._active
        rollout.dones[step:end] = False
        core.play_rollout(
            actor=policy.actor,
            parameters=policy.parameters,
            encoder=self.encoder.core,
            actions=self.encoder.action_indices.tolist(),
            steps=steps,
            uniforms=uniforms[step:end].reshape(-1),
            features=_state_rows(rollout.features, step, end),
            masks=_state_rows(rollout.action_masks, step, end),
            critic_features=_state_rows(rollout.critic_features, step, end),
            chosen=rollout.actions[step:end].reshape(-1),
            log_probabilities=rollout.log_probs[step:end].reshape(-1),
            rewards=rollout.rewards[step:end].reshape(-1),
            histories=self.encoder.history,
            returns=self._returns,
            lengths=self._lengths,
            reward_weights=self._reward_weights,
            reward_scale=self._reward_scale,
        )
        return steps

    def state(self) -> tuple[Arrays, State]:
        """Arrays and JSON values that `restore` needs."""
        arrays: Arrays = {
            "collector.returns": self._returns.copy(),
            "collector.lengths": self._lengths.copy(),
            "collector.active": self._active.copy(),
        }
        if isinstance(self.encoder, FeatureEncoder | HostFeatureEncoder):
            arrays |= {f"collector.{name}": a for name, a in self.encoder.state().items()}
        if isinstance(self.envs, NativeVectorEnv):
            games = self.envs.save(np.arange(self.envs.num_envs))
            arrays["collector.games"] = np.frombuffer(b"".join(games), np.uint8)
            arrays["collector.game_sizes"] = np.array([len(game) for game in games])
        state = {
            "episodes": self.ended_episodes,
            "begun": self.started_episodes,
            "steps": self.episode_steps,
            "choice_rng": self._rng.bit_generator.state,
        }
        if self._order_rng is not None:
            state["order_rng"] = self._order_rng.bit_generator.state
        return arrays, state

    def restore(self, arrays: Arrays, state: State, rollout: Rollout) -> None:
        """Continue from a saved state and write the first features to the rollout.

        Environments that cannot be saved restart their unfinished episodes with a new seed.
        """
        self._rng.bit_generator.state = state["choice_rng"]
        self.ended_episodes = state["episodes"]
        self.episode_steps = state["steps"]
        if not isinstance(self.envs, NativeVectorEnv):
            left = self.total_episodes - self.ended_episodes
            self.started_episodes = self.ended_episodes + min(self.envs.num_envs, left)
            self._active[:] = np.arange(self.envs.num_envs) < left
            self.reset(int(self._rng.integers(2**32)), rollout)
            return
        self.started_episodes = state["begun"]
        if self._order_rng is not None:
            self._order_rng.bit_generator.state = state["order_rng"]
        self._returns[:] = arrays["collector.returns"]
        self._lengths[:] = arrays["collector.lengths"]
        self._active[:] = arrays["collector.active"]
        bounds = np.cumsum(arrays["collector.game_sizes"])[:-1]
        games = [game.tobytes() for game in np.split(arrays["collector.games"], bounds)]
        if len(games) != self.envs.num_envs:
            raise ValueError(f"there must be {self.envs.num_envs} saved games, got {len(games)}")
        self.envs.restore(np.arange(len(games)), games)
        if isinstance(self.encoder, FeatureEncoder | HostFeatureEncoder):
            self.encoder.restore(
                {name.removeprefix("collector."): array for name, array in arrays.items()}
            )
        self._encode(_as_floats(self.envs.observations), rollout, 0)

    def _sample_actions(
        self, actor: Actor, rollout: Rollout, step: int, uniforms: Float32s
    ) -> None:
        masks = None if rollout.action_masks is None else rollout.action_masks[step]
        actions = rollout.actions[step]
        actor.sample(rollout.features[step], masks, uniforms, actions, rollout.log_probs[step])
        # All actions are in range; `clip` only saves a copy, which NumPy makes to raise errors.
        self.encoder.action_indices.take(actions, out=self._env_actions, mode="clip")

    def _step_envs(self, rollout: Rollout, step: int, finished: FinishedEpisodes) -> None:
        if self.tracker is not None:
            with stage("compliance"):
                self.tracker.update(self.envs.true_state, self._env_actions)  # type: ignore[attr-defined]
        with stage("env_step"):
            observations, rewards, terminations, truncations, infos = self.envs.step(
                self._env_actions
            )
        self._returns += rewards
        if self._has_order:
            rewards = rewards + self.envs.alignment  # type: ignore[attr-defined] # native only
        elif self.tracker is not None:
            rewards = rewards + self.tracker.alignment
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

    def _encode(self, observations: Float32s, rollout: Rollout, step: int) -> None:
        masks = None if rollout.action_masks is None else rollout.action_masks[step]
        self.encoder.encode(observations, rollout.features[step], masks)
        if rollout.critic_features is not None:
            self._write_critic_features(rollout.features[step], rollout.critic_features[step])

    def _write_critic_features(
        self, features: Float32s, critic_features: Float32s, *, final: bool = False
    ) -> None:
        core = self.envs.batch.core  # type: ignore[attr-defined] # native only
        core.write_critic_features(features, critic_features, final)

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
            env_ids = np.flatnonzero(truncated)
            critic_features = None
            if rollout.shape.critic_features:
                rows = np.empty((len(last), rollout.shape.critic_features), np.float32)
                self._write_critic_features(features, rows, final=True)
                critic_features = rows[env_ids]
            rollout.truncations.append(
                Truncation(step, env_ids, features[env_ids], critic_features)
            )
        self.encoder.reset(ended)
        if self._order_rng is not None:
            self._start_orders(ended)

    def _start_orders(self, env_ids: Int64s) -> None:
        assert self._order_rng is not None
        assert isinstance(self.encoder, FeatureEncoder)
        drawn = self._order_rng.integers(_core.ORDER_COUNT, size=len(env_ids), dtype=np.uint8)
        self.envs.batch.orders[env_ids] = drawn  # type: ignore[attr-defined] # native only
        self.encoder.history[env_ids, _core.HISTORY_ORDER_OFFSET] = drawn

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
        is_counted = self._active[ended]
        if self.tracker is not None:
            return self.tracker.end_episodes(ended)[is_counted].astype(np.int64)
        if self._has_order:
            counters = self.envs.batch.episode_counters  # type: ignore[attr-defined]
            return counters[ended[is_counted]]  # type: ignore[no-any-return]
        return np.zeros((0, _core.COUNTER_COUNT), np.int64)


def _state_rows(array: NDArray[Any] | None, step: int, end: int) -> Any:
    """The rows of all environments before each step and after the last, without their shape."""
    return None if array is None else array[step : end + 1].reshape(-1, array.shape[-1])


def _as_floats(observations: Any) -> Float32s:
    return np.ascontiguousarray(observations, np.float32)

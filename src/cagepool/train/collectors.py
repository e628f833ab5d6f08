"""Rollout collection: workers that each hold a shard of the environments, and their collector."""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from cagepool import _core
from cagepool._optional import require
from cagepool._stages import stage
from cagepool.envs.make import make_training_vec
from cagepool.envs.native import NativeVectorEnv
from cagepool.envs.vector_args import AnyVectorEnv
from cagepool.envs.workers.pool import PoolConfig
from cagepool.policy.policy import PolicySettings, TrainedScenarios, feature_encoder
from cagepool.sim.compliance import ComplianceTracker
from cagepool.sim.encoder import FeatureEncoder
from cagepool.train.config import PpoConfig, TrainConfig
from cagepool.train.native_learner import NativeActor
from cagepool.train.normalization import NormalizedActor
from cagepool.train.rollout import Actor, Encoder, FinishedEpisodes, Rollout, RolloutShape, State
from cagepool.train.samplers import EnvSampler, NativeSampler, ObservationEncoder
from cagepool.types import Arrays

Snapshot: TypeAlias = tuple[Arrays, State]  # arrays and JSON values of a checkpoint

_RECURRENT_STATE = "collector.recurrent_state"  # in a checkpoint
_POLICY_PREFIX = "player."  # in a checkpoint: weights that the pending rollout is collected with


class CollectedRollout(NamedTuple):
    """A rollout and how it was collected."""

    rollout: Rollout
    episodes: FinishedEpisodes
    seconds: float
    replaced_actors: int = 0  # Ray actors that died during the rollout


class Collector(Protocol):
    """Collects rollouts, each with the policy at the time of its `start`."""

    shape: RolloutShape
    scenarios: TrainedScenarios | None  # None: CAGE-2, in flat form

    @property
    def episodes(self) -> int:
        """Episodes that have ended; read it while no rollout is pending."""

    @property
    def steps(self) -> int:
        """Steps of these episodes."""

    @property
    def is_finished(self) -> bool:
        """Whether all episodes of the run have ended."""

    @property
    def is_pending(self) -> bool:
        """Whether a rollout is being collected in the background."""

    def start(self, weights: Arrays, /) -> None:
        """Start a rollout with a copy of the policy's weights."""

    def wait(self) -> CollectedRollout:
        """Return the started rollout. Its buffer is reused by the second-next `start`."""

    def state(self) -> Snapshot:
        """Snapshot for `restore`; a pending rollout is saved as it started."""

    def restore(self, arrays: Arrays, state: State, /) -> None:
        """Continue from a snapshot; a rollout that was pending is collected again."""

    def close(self) -> None:
        """Stop collecting and close the environments."""


class LocalCollector:
    """Collects in this process; with `ppo.overlap`, in a background thread during the update."""

    def __init__(self, config: TrainConfig) -> None:
        """Create the environments."""
        (shard,) = split_shards(config, 1)
        # Double buffer: one rollout is filled while the update reads the other.
        self.worker = RolloutWorker(config, shard, buffers=1 + config.ppo.overlap)
        self.shape = self.worker.shape
        self.scenarios = self.worker.scenarios
        self._executor = ThreadPoolExecutor(1) if config.ppo.overlap else None
        self._pending: Future[CollectedRollout] | None = None
        self._start_snapshot: Snapshot = ({}, {})  # of the pending rollout

    @property
    def episodes(self) -> int:
        """Episodes that have ended."""
        return self.worker.sampler.ended_episodes

    @property
    def steps(self) -> int:
        """Steps of these episodes."""
        return self.worker.sampler.episode_steps

    @property
    def is_finished(self) -> bool:
        """Whether all episodes of the run have ended."""
        return self.worker.sampler.is_finished

    @property
    def is_pending(self) -> bool:
        """Whether a rollout is being collected in the background."""
        return self._pending is not None

    def start(self, weights: Arrays) -> None:
        """Copy the weights and, with `ppo.overlap`, collect in the background."""
        self.worker.actor.load_weights(weights)
        if self._executor is not None:
            self._start_snapshot = self.worker.state()
            self._pending = self._executor.submit(self.worker.collect)

    def wait(self) -> CollectedRollout:
        """Wait for the background thread, or collect now."""
        if self._pending is None:
            return self.worker.collect()
        with stage("thread_wait"):
            collected = self._pending.result()
        self._pending = None
        return collected

    def state(self) -> Snapshot:
        """Snapshot of the environments, or of those at the start of the pending rollout."""
        if not self.is_pending:
            arrays, state = self.worker.state()
            return arrays, {**state, "ahead": False}
        arrays, state = self._start_snapshot
        policy = policy_arrays(self.worker.actor.weights())
        return arrays | policy, {**state, "ahead": True}

    def restore(self, arrays: Arrays, state: State) -> None:
        """Continue from a snapshot."""
        self.worker.restore(arrays, state)
        if state["ahead"]:
            self.start(policy_weights(arrays))

    def close(self) -> None:
        """Wait for the background thread and close the environments."""
        if self._executor is not None:
            self._executor.shutdown()
        self.worker.close()


class RolloutWorker:
    """A shard of a run's environments with a copy of the policy that plays them."""

    def __init__(self, config: TrainConfig, shard: "Shard", buffers: int = 1) -> None:
        """Create the environments; rollouts rotate through this many buffers."""
        n_envs = shard.n_envs
        self._envs = _make_envs(config, n_envs)
        encoder = _encoder(config, self._envs)
        self.scenarios: TrainedScenarios | None = None
        blocks = None
        if isinstance(encoder, FeatureEncoder) and encoder.blocks is not None:
            blocks = encoder.blocks
            self.scenarios = TrainedScenarios.from_encoder(encoder)
        self.sampler = _make_sampler(config, shard, self._envs, encoder)
        masked = config.env.is_cage and config.features.action_masking
        self.shape = RolloutShape(
            config.ppo.update_steps,
            n_envs,
            encoder.size,
            encoder.n_choices,
            masked,
            _critic_features(config, encoder),
            blocks,
        )
        self.actor = make_actor(config.ppo, self.shape)
        self.buffers = [Rollout(self.shape) for _ in range(buffers)]
        self.sampler.reset(shard.seed, self.buffers[0])

    def collect(self) -> CollectedRollout:
        """Fill the next buffer, or its first rows if the shard's last episode ends earlier."""
        start = time.perf_counter()
        last = self.buffers[0]
        self.buffers.reverse()
        rollout = self.buffers[0]
        with stage("rollout"):
            rollout.restart(last)
            episodes = self.sampler.collect(self.actor, rollout)
        return CollectedRollout(rollout, episodes, time.perf_counter() - start)

    def state(self) -> Snapshot:
        """Snapshot for `restore`."""
        arrays, state = self.sampler.state()
        if self.actor.state is not None:
            arrays[_RECURRENT_STATE] = self.actor.state.copy()
        return arrays, state

    def restore(self, arrays: Arrays, state: State) -> None:
        """Continue from a snapshot."""
        self.sampler.restore(arrays, state, self.buffers[0])
        if self.actor.state is None:
            return
        if self.sampler.restores_episodes:
            self.actor.load_state(arrays[_RECURRENT_STATE])
        else:
            self.actor.reset(np.arange(self.shape.n_envs))

    def close(self) -> None:
        """Close the environments and the policy."""
        self.actor.close()
        self._envs.close()


class SeedStreams(NamedTuple):
    """Independent random streams of a run, all derived from its seed."""

    actions: np.random.SeedSequence
    shuffles: np.random.SeedSequence
    games: np.random.SeedSequence
    weights: np.random.SeedSequence
    orders: np.random.SeedSequence

    @classmethod
    def from_seed(cls, seed: int) -> "SeedStreams":
        """Streams of the run with this seed."""
        return cls(*np.random.SeedSequence(seed).spawn(len(cls._fields)))


class Shard(NamedTuple):
    """Part of a run's environments and episodes, with its own random streams."""

    n_envs: int
    episodes: int
    seed: int  # of the first environment; the others count up from it
    action_seeds: np.random.SeedSequence
    order_seeds: np.random.SeedSequence


def split_shards(config: TrainConfig, count: int) -> list[Shard]:
    """Split the environments and episodes of a run evenly."""
    total = config.run.total_episodes
    n_envs = min(config.env.n_envs, total)
    if not 1 <= count <= n_envs:
        raise ValueError(
            f"env.ray_actors must be at most the number of environments, got {count} for {n_envs}"
        )
    streams = SeedStreams.from_seed(config.run.seed)
    seed = int(streams.games.generate_state(1)[0])
    action_seeds, order_seeds = (
        [stream] if count == 1 else stream.spawn(count)
        for stream in (streams.actions, streams.orders)
    )
    bounds = [n_envs * number // count for number in range(count + 1)]
    return [
        Shard(end - first, total * end // n_envs - total * first // n_envs, seed + first, *seeds)
        for first, end, *seeds in zip(bounds, bounds[1:], action_seeds, order_seeds, strict=False)
    ]


def policy_arrays(weights: Arrays) -> Arrays:
    """Weights of the pending rollout's policy, by their names in a checkpoint."""
    return {f"{_POLICY_PREFIX}{name}": array for name, array in weights.items()}


def policy_weights(arrays: Arrays) -> Arrays:
    """Weights of the pending rollout's policy, from the arrays of a checkpoint."""
    return {
        name.removeprefix(_POLICY_PREFIX): array
        for name, array in arrays.items()
        if name.startswith(_POLICY_PREFIX)
    }


def _make_envs(config: TrainConfig, n_envs: int) -> AnyVectorEnv:
    game, true_state = config.game, PoolConfig.true_state
    if config.order.has_orders and not config.env.is_native:  # Python computes the compliance
        game, true_state = replace(game, order=None, alignment=0.0), "every"
    env = config.env
    return make_training_vec(
        n_envs, env.id, env.vector_backend, game, reward=env.reward, true_state=true_state
    )


def _make_sampler(
    config: TrainConfig, shard: Shard, envs: AnyVectorEnv, encoder: Encoder
) -> EnvSampler:
    kind = NativeSampler if isinstance(envs, NativeVectorEnv) else EnvSampler
    rng = np.random.default_rng(shard.action_seeds)
    sampler = kind(envs, encoder, shard.episodes, config.ppo.reward_scale, rng)
    sampler.has_reward_function = config.env.reward is not None
    if config.order.order is not None and not config.env.is_native:
        sampler.tracker = _compliance_tracker(config, shard.n_envs)
    if config.env.score_lengths:
        sampler.weight_rewards(config.env.score_lengths)
    if config.order.universal:
        assert isinstance(sampler, NativeSampler)
        sampler.draw_orders(np.random.default_rng(shard.order_seeds))
    return sampler


def _compliance_tracker(config: TrainConfig, games: int) -> ComplianceTracker:
    assert config.order.order is not None
    return ComplianceTracker(
        games,
        config.order.order,
        knowledge=config.order.knowledge,
        definition=config.order.definition,
        alignment=config.order.alignment_lambda,
    )


def _critic_features(config: TrainConfig, encoder: Encoder) -> int:
    """Inputs of the critic; 0: those of the actor."""
    sees_true_state = config.features.critic_inputs == "true"
    return encoder.size + _core.TRUE_STATE_FEATURES if sees_true_state else 0


def _encoder(config: TrainConfig, envs: Any) -> Encoder:
    if config.sees_hosts:
        return FeatureEncoder(
            config.features, envs.batch, horizon=config.env.max_steps, blocks=True
        )
    if config.env.is_cage:
        return feature_encoder(PolicySettings.from_dict(config.as_dict()), envs.num_envs)
    size = int(np.prod(envs.single_observation_space.shape))
    return ObservationEncoder(size, int(envs.single_action_space.n))


def make_actor(config: PpoConfig, shape: RolloutShape) -> Actor:
    """Create an actor for rollouts of this shape; load weights before it samples."""
    actor: Actor
    if config.network == "mlp":  # also of the torch learner: the weights have the same names
        actor = NativeActor(config, shape)
    else:
        what = f"learner torch (network {config.network}, device {config.device})"
        with require(what, "train", "torch"):
            from cagepool.train.torch_learner import TorchActor  # noqa: PLC0415 - slow import

            actor = TorchActor(config, shape)
    return NormalizedActor(actor) if config.normalize_observations else actor

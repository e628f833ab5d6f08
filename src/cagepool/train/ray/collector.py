"""Collector whose rollout workers are Ray actors."""

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
import ray

from cagepool.policy.policy import TrainedScenarios
from cagepool.train.collectors import (
    CollectedRollout,
    RolloutWorker,
    Shard,
    Snapshot,
    policy_arrays,
    policy_weights,
    split_shards,
)
from cagepool.train.config import TrainConfig
from cagepool.train.ray import NodeLostError, cluster_connection, result
from cagepool.train.rollout import FinishedEpisodes, Rollout, RolloutShape, State
from cagepool.types import Arrays

ACTOR_START_SECONDS = 180.0
MAX_ATTEMPTS = 10  # per rollout and shard
# Reserved per actor: small, so that the remaining nodes have room when a node dies.
ACTOR_CPUS = 0.01


class RayCollector:
    """Collects in Ray actors, one per shard of the environments and episodes.

    The shards, their random streams and the policy of each rollout are fixed beforehand, so the
    results do not depend on timing.
    """

    def __init__(self, config: TrainConfig) -> None:
        """Start the actors in the connected cluster, or in a new local one."""
        shards = split_shards(config, config.env.ray_actors)
        self._stack = ExitStack()
        with ExitStack() as started:
            started.enter_context(cluster_connection(None, config.env.ray_actors))
            self._workers = [_RemoteWorker(config, shard) for shard in shards]
            started.callback(self._close_workers)
            shapes = [worker.wait_started() for worker in self._workers]
            self._stack = started.pop_all()
        first = shapes[0]
        self.scenarios: TrainedScenarios | None = None  # TrainConfig refuses scenarios with Ray
        self.shape = replace(first, n_envs=sum(shape.n_envs for shape in shapes))
        self._rollout = Rollout(self.shape)
        self._weights: Any = None  # object reference to the weights of the pending rollout

    @property
    def episodes(self) -> int:
        """Episodes that have ended."""
        return self._sum("episodes")

    @property
    def steps(self) -> int:
        """Steps of these episodes."""
        return self._sum("steps")

    @property
    def is_finished(self) -> bool:
        """Whether all episodes of the run have ended."""
        return all(worker.is_finished for worker in self._workers)

    @property
    def is_pending(self) -> bool:
        """Whether a rollout is being collected."""
        return self._weights is not None

    def start(self, weights: Arrays) -> None:
        """Send the weights to all actors and let them collect."""
        self._weights = ray.put(weights)
        for worker in self._workers:
            if not worker.is_finished:
                worker.start(self._weights)

    def wait(self) -> CollectedRollout:
        """Wait for all actors and merge their rollouts."""
        rollout, first = self._rollout, 0
        parts = [None if worker.is_finished else worker.wait() for worker in self._workers]
        self._weights = None
        rollout.steps = max(part.rollout.steps for part in parts if part is not None)
        rollout.truncations.clear()
        for worker, part in zip(self._workers, parts, strict=True):
            _write_columns(rollout, first, worker.shard.n_envs, part)
            first += worker.shard.n_envs
        return _merge(rollout, [part for part in parts if part is not None])

    def state(self) -> Snapshot:
        """Snapshot of all shards at the start of their last rollout."""
        arrays = {
            f"actor{number}.{name}": array
            for number, worker in enumerate(self._workers)
            for name, array in worker.snapshot[0].items()
        }
        if self.is_pending:
            arrays |= policy_arrays(ray.get(self._weights))
        state = {
            "episodes": self.episodes,
            "steps": self.steps,
            "actors": [worker.snapshot[1] for worker in self._workers],
            "ahead": self.is_pending,
        }
        return arrays, state

    def restore(self, arrays: Arrays, state: State) -> None:
        """Continue from a snapshot."""
        for number, worker in enumerate(self._workers):
            prefix = f"actor{number}."
            own = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
            worker.restore((own, state["actors"][number]))
        if state["ahead"]:
            self.start(policy_weights(arrays))

    def close(self) -> None:
        """Stop the actors, and the cluster if it was started for them."""
        self._stack.close()

    def _close_workers(self) -> None:
        for worker in self._workers:
            worker.close()

    def _sum(self, name: str) -> int:
        return sum(worker.snapshot[1][name] for worker in self._workers)


class _RemoteWorker:
    """Handle of the actor of one shard; an actor that dies is replaced."""

    def __init__(self, config: TrainConfig, shard: Shard) -> None:
        self.shard = shard
        self._config = config
        self._actor: Any = None  # Ray's handles and references have no types
        self._weights: Any = None
        self._pending: Any = None
        self._start_actor()

    def wait_started(self) -> RolloutShape:
        """Wait until the actor is ready; returns the shape of its rollouts."""
        try:
            shape, self.snapshot = result(self._started, ACTOR_START_SECONDS)
        except ConnectionError as error:
            reason = str(error).splitlines()[-1]
            raise ValueError(
                f"the nodes of the cluster must have room and this version of cagepool: {reason}"
            ) from error
        return shape  # type: ignore[no-any-return]

    @property
    def is_finished(self) -> bool:
        return bool(self.snapshot[1]["episodes"] == self.shard.episodes)

    def start(self, weights: Any) -> None:
        self._weights = weights
        # Two return values, so that the snapshot does not keep the rollout in the object store.
        self._pending = self._actor.collect.options(num_returns=2).remote(weights)

    def wait(self) -> CollectedRollout:
        """Return the started rollout; one that was lost is collected again from its start."""
        replaced = 0
        for _ in range(MAX_ATTEMPTS):
            try:
                if self._pending is None:
                    self._replace_actor()
                collected, self.snapshot = result(self._pending)
                return collected._replace(replaced_actors=replaced)  # type: ignore[no-any-return]
            except NodeLostError as error:
                last_error = error
                replaced += self._pending is not None  # an actor that never started is not counted
                self._pending = None
        raise ConnectionError(
            f"{MAX_ATTEMPTS} actors died one after another: {last_error}"
        ) from last_error

    def restore(self, snapshot: Snapshot) -> None:
        result(self._actor.restore.remote(snapshot))
        self.snapshot = snapshot

    def close(self) -> None:
        ray.kill(self._actor)

    def _start_actor(self) -> None:
        actor = ray.remote(_Actor).options(num_cpus=ACTOR_CPUS, scheduling_strategy="SPREAD")
        self._actor = actor.remote(self._config, self.shard)
        self._started = self._actor.start.remote()

    def _replace_actor(self) -> None:
        self.close()
        self._start_actor()
        result(self._started, ACTOR_START_SECONDS)
        self.restore(self.snapshot)
        self.start(self._weights)


class _Actor:
    """Ray actor with one rollout worker."""

    def __init__(self, config: TrainConfig, shard: Shard) -> None:
        self._config = config
        self._shard = shard

    def start(self) -> tuple[RolloutShape, Snapshot]:
        self._worker = RolloutWorker(self._config, self._shard)
        return self._worker.shape, self._worker.state()

    def restore(self, snapshot: Snapshot) -> None:
        self._worker.restore(*snapshot)

    def collect(self, weights: Arrays) -> tuple[CollectedRollout, Snapshot]:
        self._worker.actor.load_weights(weights)
        return self._worker.collect(), self._worker.state()


def _write_columns(
    rollout: Rollout, first: int, n_envs: int, part: CollectedRollout | None
) -> None:
    """Write an actor's rollout to the columns of its shard; missing steps are not counted."""
    columns = slice(first, first + n_envs)
    steps = 0 if part is None else part.rollout.steps
    rollout.rewards[steps:, columns] = 0
    rollout.dones[steps:, columns] = True
    rollout.counted[steps:, columns] = False
    if part is None:
        return
    for name in ("actions", "log_probs", "rewards", "dones", "counted"):
        getattr(rollout, name)[:steps, columns] = getattr(part.rollout, name)[:steps]
    for name in ("features", "critic_features", "action_masks"):
        whole, own = getattr(rollout, name), getattr(part.rollout, name)
        if whole is not None:
            whole[: steps + 1, columns] = own[: steps + 1]
    if part.rollout.initial_state is not None:
        if rollout.initial_state is None:
            size = part.rollout.initial_state.shape[1]
            rollout.initial_state = np.zeros((rollout.shape.n_envs, size), np.float32)
        rollout.initial_state[columns] = part.rollout.initial_state
    rollout.truncations += [
        replace(end, env_ids=end.env_ids + first) for end in part.rollout.truncations
    ]


def _merge(rollout: Rollout, parts: list[CollectedRollout]) -> CollectedRollout:
    episodes = FinishedEpisodes(
        returns=[value for part in parts for value in part.episodes.returns],
        shaped_returns=[value for part in parts for value in part.episodes.shaped_returns],
        lengths=[value for part in parts for value in part.episodes.lengths],
        counters=np.concatenate([part.episodes.counters for part in parts]),
    )
    seconds = max(part.seconds for part in parts)  # of the slowest actor
    return CollectedRollout(rollout, episodes, seconds, sum(p.replaced_actors for p in parts))

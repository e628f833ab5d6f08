"""Proximal Policy Optimization (PPO): collect a rollout, estimate advantages, update in epochs."""

import math
import time
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from cagepool._optional import require
from cagepool._stages import stage
from cagepool.policy.policy import TrainedScenarios
from cagepool.scenarios import CAGE2
from cagepool.train.collectors import CollectedRollout, Collector, LocalCollector, SeedStreams
from cagepool.train.config import PpoConfig, TrainConfig
from cagepool.train.learner import (
    Learner,
    LossCoefficients,
    LossTerms,
    Sequences,
    Transitions,
    mean_terms,
    set_start_biases,
    start_biases,
)
from cagepool.train.native_learner import NativeLearner
from cagepool.train.normalization import Normalization
from cagepool.train.rollout import FinishedEpisodes, Rollout, RolloutShape, State
from cagepool.types import Arrays, Bools, Float32s, Int64s

Number = TypeVar("Number", bound=np.generic)


class UpdateStats(NamedTuple):
    """Results of one PPO update; loss and gradient norm are means over its minibatches."""

    loss: LossTerms
    explained_variance: float
    gradient_norm: float  # of the actor, before clipping
    learning_rate: float


class Update(NamedTuple):
    """One iteration of the training loop: a rollout and the update with it."""

    number: int
    episodes: int  # ended since the start of the run
    steps: int
    finished: FinishedEpisodes
    stats: UpdateStats
    staleness: int  # updates between the policy that collected and the policy that is updated
    replaced_actors: int  # Ray actors that died during the rollout
    collect_seconds: float
    wait_seconds: float  # part of the collection that did not overlap with an update
    update_seconds: float


class Trainer:
    """Training loop; iterate over `updates`. A context manager.

    With `ppo.overlap`, the next rollout is collected during the update, with the policy before it:
    the policy is always exactly one update stale, so the results do not depend on timing.
    """

    def __init__(self, config: TrainConfig) -> None:
        """Create environments and networks."""
        self.config = config
        self.number = 0
        self.episodes = 0  # ended in the rollouts of all updates so far
        self.collector = _make_collector(config)
        self._scenarios = self.collector.scenarios
        seeds = SeedStreams.from_seed(config.run.seed)
        weights_seed = int(seeds.weights.generate_state(1)[0])
        self.learner = make_learner(config.ppo, self.collector.shape, weights_seed)
        biases = start_biases(config, self.collector.shape)
        if biases is not None:
            set_start_biases(self.learner, biases, self.collector.shape)
        self.normalization = Normalization(config.ppo, self.collector.shape)
        self.ppo = Ppo(self.learner, config.ppo, np.random.default_rng(seeds.shuffles))

    def weights(self) -> Arrays:
        """What the policy needs to play: weights and, if normalized, moments of its inputs."""
        scenarios = {} if self._scenarios is None else self._scenarios.to_arrays()
        return self.learner.weights() | self.normalization.weights() | scenarios

    def updates(self) -> Iterator[Update]:
        """Train until all episodes have ended; yields after every update."""
        collector = self.collector
        while collector.is_pending or not collector.is_finished:
            start = time.perf_counter()
            overlapped = collector.is_pending
            collected = self.collect()
            collected_at = time.perf_counter()
            episodes, steps = collector.episodes, collector.steps
            if self.config.ppo.overlap and not collector.is_finished:
                collector.start(self.weights())
            progress = self.episodes / self.config.run.total_episodes
            stats = self.ppo.update(self.normalization.apply(collected.rollout), progress)
            self.normalization.update(collected.rollout)
            self.number += 1
            self.episodes = episodes
            yield Update(
                number=self.number,
                episodes=episodes,
                steps=steps,
                finished=collected.episodes,
                stats=stats,
                staleness=int(overlapped),
                replaced_actors=collected.replaced_actors,
                collect_seconds=collected.seconds,
                wait_seconds=collected_at - start,
                update_seconds=time.perf_counter() - collected_at,
            )

    def collect(self) -> CollectedRollout:
        """Return the pending rollout, or collect one now."""
        if not self.collector.is_pending:
            self.collector.start(self.weights())
        return self.collector.wait()

    def state(self) -> tuple[Arrays, State]:
        """Arrays and JSON values that `restore` needs."""
        arrays, state = self.collector.state()
        shuffle_rng = self.ppo.rng.bit_generator.state
        state = {**state, "update": self.number, "shuffle_rng": shuffle_rng}
        scenarios = {} if self._scenarios is None else self._scenarios.to_arrays()
        learned = {**self.learner.arrays(), **self.normalization.arrays()}
        return {**arrays, **learned, **scenarios}, state

    def restore(self, arrays: Arrays, state: State) -> None:
        """Continue from a saved state; a rollout that was pending is collected again."""
        if TrainedScenarios.from_arrays(arrays) != self._scenarios:
            raise ValueError(
                f"the scenarios {self.config.env.scenario or CAGE2.name} have changed since the "
                "start of the run"
            )
        self.number = state["update"]
        self.episodes = state["episodes"]
        self.ppo.rng.bit_generator.state = state["shuffle_rng"]
        self.load_policy(arrays)
        self.collector.restore(arrays, state)

    def load_policy(self, arrays: Arrays) -> None:
        """Load policy, optimizer and normalization from the arrays of a checkpoint."""
        self.learner.load_arrays(arrays)
        self.normalization.load_arrays(arrays)

    def close(self) -> None:
        """Stop the threads and close the environments."""
        with stage("setup"), closing(self.learner):
            self.collector.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Ppo:
    """The PPO update: advantages, epochs, minibatches, schedules."""

    def __init__(self, learner: Learner, config: PpoConfig, rng: np.random.Generator) -> None:
        """Update the networks of this learner; `rng` shuffles the transitions."""
        self.learner = learner
        self.rng = rng
        self._config = config

    def update(self, rollout: Rollout, progress: float) -> UpdateStats:
        """Update the networks with a rollout, at `progress` (0 to 1) of the run."""
        with stage("advantages"):
            transitions, explained_variance = self.transitions(rollout)
        with stage("update"):
            return self._train_epochs(transitions, explained_variance, progress)

    def _train_epochs(
        self, transitions: Transitions, explained_variance: float, progress: float
    ) -> UpdateStats:
        config = self._config
        learning_rate = scheduled_learning_rate(config, progress)
        ent_coef = _interpolate(config.ent_coef, config.ent_coef_end, progress)
        coefficients = LossCoefficients(config.clip_range, config.clip_range_vf, ent_coef)
        terms: list[LossTerms] = []
        norms: list[float] = []
        for _ in range(config.n_epochs):
            first = len(terms)
            for rows in self._minibatches(transitions):
                loss, norm = self.learner.step(transitions, rows, coefficients, learning_rate)
                terms.append(loss)
                norms.append(norm)
            if config.target_kl and mean_terms(terms[first:]).kl > config.target_kl:
                break
        mean_norm = float(np.mean(norms))
        return UpdateStats(mean_terms(terms), explained_variance, mean_norm, learning_rate)

    def _minibatches(self, transitions: Transitions) -> Iterator[Int64s]:
        """Row numbers in random order, split into minibatches.

        A recurrent policy learns from whole sequences: its minibatches are environments.
        """
        sequences = transitions.sequences
        count = len(transitions.actions) if sequences is None else sequences.dones.shape[1]
        shuffled = self.rng.permutation(count)
        for part in np.array_split(shuffled, min(self._config.n_minibatches, count)):
            rows = part if sequences is None else sequences.rows_of(part)
            if len(rows):
                yield rows

    def transitions(self, rollout: Rollout) -> tuple[Transitions, float]:
        """Transitions of a rollout with their advantages, and the critic's explained variance."""
        config, steps = self._config, rollout.steps
        values, truncated = self.learner.values(rollout)
        rewards = rollout.rewards[:steps].copy()
        if config.bootstrap:
            for end, last_values in zip(rollout.truncations, truncated, strict=True):
                rewards[end.step, end.env_ids] += config.gamma * last_values
        advantages = gae_advantages(
            rewards, values, rollout.dones[:steps], config.gamma, config.gae_lambda
        )
        counted = rollout.counted[:steps]
        if not counted.any():  # only a damaged checkpoint resumes where no step is left
            raise ValueError("a rollout must have transitions, got none")
        returns = advantages + values[:-1]
        explained = _explained_variance(advantages[counted], returns[counted])
        if config.normalize_advantage:
            mean, deviation = advantages[counted].mean(), advantages[counted].std()
            advantages = (advantages - mean) / (deviation + 1e-8)
        sequences = None
        if rollout.initial_state is not None:
            sequences = Sequences(rollout.dones[:steps], counted, rollout.initial_state)
        kept = None if sequences is not None or counted.all() else np.flatnonzero(counted)

        def flat(array: NDArray[Number]) -> NDArray[Number]:
            rows = array[:steps].reshape(steps * rollout.shape.n_envs, *array.shape[2:])
            return rows if kept is None else rows[kept]

        critic_features, masks = rollout.critic_features, rollout.action_masks
        return Transitions(
            features=flat(rollout.features),
            critic_features=None if critic_features is None else flat(critic_features),
            action_masks=None if masks is None else flat(masks),
            actions=flat(rollout.actions),
            log_probs=flat(rollout.log_probs),
            advantages=flat(advantages),
            values=flat(values),
            returns=flat(returns),
            sequences=sequences,
        ), explained


def gae_advantages(
    rewards: Float32s, values: Float32s, dones: Bools, gamma: float, gae_lambda: float
) -> Float32s:
    """Generalized advantage estimation (GAE), (steps, environments).

    Args:
        rewards: (steps, environments); at a time limit with the bootstrapped value included.
        values: (steps + 1, environments), of the state before each step and after the last.
        dones: (steps, environments), whether the episode ended with this step.
        gamma: Discount factor.
        gae_lambda: Decay of the estimates.
    """
    not_done = (~dones).astype(np.float32)
    errors = rewards + gamma * values[1:] * not_done - values[:-1]
    decay = np.float32(gamma * gae_lambda) * not_done
    advantages = np.empty_like(rewards)
    last = np.zeros_like(rewards[0])
    for step in reversed(range(len(rewards))):
        last = errors[step] + decay[step] * last
        advantages[step] = last
    return advantages


def scheduled_learning_rate(config: PpoConfig, progress: float) -> float:
    """Learning rate at `progress` (0 to 1) of the run."""
    if config.learning_rate_schedule == "constant":
        return config.learning_rate
    if config.learning_rate_schedule == "cosine":
        progress = (1 - math.cos(math.pi * progress)) / 2
    return _interpolate(config.learning_rate, config.learning_rate_end, progress)


def _explained_variance(advantages: Float32s, returns: Float32s) -> float:
    variance = returns.var()
    return float(1 - advantages.var() / variance) if variance > 0 else float("nan")


def _interpolate(start: float, end: float, progress: float) -> float:
    return end + (1 - progress) * (start - end)


def _make_collector(config: TrainConfig) -> Collector:
    if config.env.backend != "ray":
        return LocalCollector(config)
    with require("backend ray", "ray", "ray"):
        from cagepool.train.ray.collector import RayCollector  # noqa: PLC0415 - slow import

        return RayCollector(config)


def make_learner(config: PpoConfig, shape: RolloutShape, seed: int) -> Learner:
    """Create the learner of a configuration, with weights drawn from the seed.

    By default the native one for MLPs on the CPU.
    """
    fits = config.network == "mlp" and config.device in ("auto", "cpu")
    if config.learner == "native" or (config.learner == "auto" and fits):
        return NativeLearner(config, shape, seed)
    what = f"learner torch (network {config.network}, device {config.device})"
    with require(what, "train", "torch"):
        from cagepool.train.torch_learner import TorchLearner  # noqa: PLC0415 - slow import

        return TorchLearner(config, shape, seed)

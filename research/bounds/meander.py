"""Estimate of the best score against Meander with full information: PPO on the true state.

The policy sees the whole state of the game, red's memory included. Its score is what a defender
that sees everything reaches at least; it is an estimate of the optimum, not a proof, since PPO need
not find the optimum.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cagepool import _core
from cagepool.sim import Batch, BatchConfig
from cagepool.sim.encoder import FeatureConfig, FeatureEncoder
from cagepool.train.collectors import make_actor
from cagepool.train.config import PpoConfig
from cagepool.train.ppo import Ppo, make_learner
from cagepool.train.rollout import Actor, Rollout, RolloutShape
from cagepool.types import Arrays, Float32s, Float64s, Seeds
from research.bounds.floors import SUM
from research.bounds.solve import LENGTHS, length_weights

HORIZON = max(LENGTHS)
CHECK_SEED, FINAL_SEED = 1 << 40, 1 << 41  # training uses small seeds
PPO = PpoConfig(gamma=1.0, bootstrap=False, n_minibatches=8, hidden=(128, 64), threads=1)
# Beside the true state: standing decoys, which masks need, and the clock.
FEATURES = FeatureConfig(
    observation=False, scan_memory=False, last_action=False, clock=True, actions="lean"
)


@dataclass(frozen=True, kw_only=True)
class MeanderConfig:
    """Settings of one training."""

    edition: str = "2.1"
    seed: int = 1
    episodes: int = 64_000
    games: int = 400
    """Games played together, one episode each per update."""
    check_updates: int = 10
    """Updates between two checks of the greedy policy."""
    check_games: int = 2000
    ppo: PpoConfig = PPO
    features: FeatureConfig = FEATURES


class TrueStateGames:
    """Games against Meander, encoded with their true state."""

    def __init__(self, games: int, config: MeanderConfig) -> None:
        """Create the games."""
        settings = BatchConfig(
            red="RedMeanderAgent", edition=config.edition, max_steps=HORIZON, autoreset="disabled"
        )
        self.batch = Batch(games, settings)
        self.encoder = FeatureEncoder(config.features, games, horizon=HORIZON)
        self.size = self.encoder.size + _core.TRUE_STATE_FEATURES
        self._observed: Float32s = np.zeros((games, self.encoder.size), np.float32)

    def shape(self) -> RolloutShape:
        """Shape of a rollout of whole episodes."""
        return RolloutShape(
            HORIZON, self.batch.games, self.size, self.encoder.n_choices, masked=True
        )

    def play(self, actor: Actor, rollout: Rollout, seeds: Seeds, uniforms: Float32s | None) -> None:
        """Fill a rollout with one episode per game; greedy without uniform random numbers."""
        assert rollout.action_masks is not None
        self.batch.reset(seeds)
        self.encoder.reset()
        self._encode(rollout, 0)
        for step in range(HORIZON):
            features, masks = rollout.features[step], rollout.action_masks[step]
            choices = rollout.actions[step]
            if uniforms is None:
                logits = np.where(masks, actor.logits(features, masks), -np.inf)
                choices[:] = logits.argmax(axis=1)
            else:
                actor.sample(features, masks, uniforms[step], choices, rollout.log_probs[step])
            actions = self.encoder.action_indices[choices]
            self.batch.step(actions)
            rollout.rewards[step] = self.batch.rewards
            self.encoder.update(actions, self.batch.observations)
            self._encode(rollout, step + 1)
        rollout.dones[:] = False
        rollout.dones[-1] = True
        rollout.steps = HORIZON

    def _encode(self, rollout: Rollout, step: int) -> None:
        assert rollout.action_masks is not None
        masks = rollout.action_masks[step]
        self.encoder.encode(self.batch.observations, self._observed, masks)
        self.batch.core.write_critic_features(self._observed, rollout.features[step])


class TrueStateTraining:
    """PPO on the true state."""

    def __init__(self, config: MeanderConfig) -> None:
        """Create games and networks."""
        self.config = config
        self._games = TrueStateGames(config.games, config)
        shape = self._games.shape()
        self._rollout = Rollout(shape)  # of training and evaluation, which take turns
        self._actor = make_actor(config.ppo, shape)
        self._learner = make_learner(config.ppo, shape, config.seed)
        self._rng = np.random.default_rng(config.seed)
        self._ppo = Ppo(self._learner, config.ppo, self._rng)
        weights = np.array(length_weights(), np.float32)
        self._reward_weights = weights[:, None] * config.ppo.reward_scale

    def run(self) -> tuple[Arrays, float]:
        """Train; return the weights of the best check and the seconds of the training."""
        config, began = self.config, time.perf_counter()
        updates = max(1, config.episodes // config.games)
        best, best_score = self._copy_weights(), -np.inf
        for update in range(updates):
            self._update(update / updates)
            if (update + 1) % config.check_updates == 0 or update + 1 == updates:
                weights = self._copy_weights()
                score = float(self._score(weights, config.check_games, CHECK_SEED).sum(1).mean())
                print(
                    f"{config.edition}, seed {config.seed}, {update + 1}: {score:.2f}", flush=True
                )
                if score > best_score:
                    best, best_score = weights, score
        return best, time.perf_counter() - began

    def evaluate(self, weights: Arrays, games: int) -> Float64s:
        """Totals of greedy games on seeds that training and checks did not use, by length."""
        return self._score(weights, games, FINAL_SEED)

    def close(self) -> None:
        """Stop the threads."""
        self._learner.close()

    def _update(self, progress: float) -> None:
        rollout = self._rollout
        self._actor.load_weights(self._learner.weights())
        seeds = self._rng.integers(1 << 32, size=self.config.games, dtype=np.uint64)
        uniforms = self._rng.random(rollout.rewards.shape, np.float32)
        self._games.play(self._actor, rollout, seeds, uniforms)
        rollout.rewards *= self._reward_weights
        self._ppo.update(rollout, progress)

    def _copy_weights(self) -> Arrays:
        return {name: array.copy() for name, array in self._learner.weights().items()}

    def _score(self, weights: Arrays, games: int, seed: int) -> Float64s:
        """Totals by game and length, (games, LENGTHS); games in whole batches."""
        self._actor.load_weights(weights)
        found = []
        for first in range(seed, seed + games, self.config.games):
            seeds = np.arange(first, first + self.config.games, dtype=np.uint64)
            self._games.play(self._actor, self._rollout, seeds, None)
            totals = np.cumsum(self._rollout.rewards, axis=0, dtype=np.float64)
            found.append(np.stack([totals[length - 1] for length in LENGTHS], axis=1))
        return np.concatenate(found)[:games]


def train_and_score(config: MeanderConfig, games: int = 10_000) -> dict[str, Any]:
    """Train, and score the best policy of the checks on other seeds."""
    training = TrueStateTraining(config)
    weights, seconds = training.run()
    totals = training.evaluate(weights, games)
    training.close()
    return {
        "seed": config.seed,
        "episodes": config.episodes,
        "games": games,
        "seconds": round(seconds, 1),
        **_scores(totals),
    }


def best_run(runs: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The run with the best sum over the lengths."""
    return max(runs, key=lambda run: float(run["score"][SUM]))


def _scores(totals: Float64s) -> dict[str, dict[str, float]]:
    columns = dict(zip(map(str, LENGTHS), totals.T, strict=True)) | {SUM: totals.sum(axis=1)}
    error = np.sqrt(len(totals))
    return {
        "score": {name: round(float(found.mean()), 4) for name, found in columns.items()},
        "standard_error": {
            name: round(float(found.std(ddof=1) / error), 4) for name, found in columns.items()
        },
    }

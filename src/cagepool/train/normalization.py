"""Running normalization of features and rewards, for environments without a natural scale.

The trainer owns the moments and updates them after every update of the policy, so that actor and
learner see the same features, and the results do not depend on who collects.
"""

import copy
from dataclasses import replace

import numpy as np

from cagepool.policy.policy import (
    FEATURE_DEVIATION,
    FEATURE_MEAN,
    feature_moments,
    normalize_features,
)
from cagepool.train.config import PpoConfig
from cagepool.train.rollout import Actor, Rollout, RolloutShape
from cagepool.types import Arrays, Bytes, Float32s, Float64s, Int64s

MIN_DEVIATION = 1e-4  # a constant feature stays 0 instead of being divided by 0


class RunningMoments:
    """Mean and variance of rows, merged batch by batch (Chan et al.)."""

    def __init__(self, size: int) -> None:
        """Start without rows."""
        self._moments: Float64s = np.zeros((3, size))  # count, mean, sum of squared deviations

    def update(self, rows: Float32s | Float64s) -> None:
        """Add rows, (rows, size)."""
        if not len(rows):
            return
        count, mean, squares = self._moments
        added_mean = rows.mean(0, dtype=np.float64)
        added_squares = ((rows - added_mean) ** 2).sum(0)
        total = count + len(rows)
        change = added_mean - mean
        mean += change * len(rows) / total
        squares += added_squares + change**2 * count * len(rows) / total
        count[:] = total

    @property
    def mean(self) -> Float32s:
        """Mean; 0 without rows."""
        mean: Float32s = self._moments[1].astype(np.float32)
        return mean

    @property
    def deviation(self) -> Float32s:
        """Standard deviation; 1 without rows."""
        count, _, squares = self._moments
        variance = np.where(count > 0, squares / np.maximum(count, 1), 1)
        return np.maximum(np.sqrt(variance), MIN_DEVIATION).astype(np.float32)

    def array(self) -> Float64s:
        """All moments, as `load_array` takes them."""
        return self._moments.copy()

    def load_array(self, array: Float64s) -> None:
        """Restore the moments."""
        if array.shape != self._moments.shape:
            raise ValueError(f"moments must have shape {self._moments.shape}, got {array.shape}")
        self._moments[:] = array


class FeatureNormalizer:
    """Features with mean 0 and deviation 1."""

    def __init__(self, size: int) -> None:
        """Start with the features as they are."""
        self.moments = RunningMoments(size)

    def weights(self) -> Arrays:
        """Mean and deviation by their names in a checkpoint: the policy needs them to play."""
        return {FEATURE_MEAN: self.moments.mean, FEATURE_DEVIATION: self.moments.deviation}

    def apply(self, rollout: Rollout) -> Rollout:
        """A rollout with normalized features; the other arrays are shared."""
        mean, deviation = self.moments.mean, self.moments.deviation
        normalized = copy.copy(rollout)
        normalized.features = normalize_features(rollout.features, mean, deviation)
        normalized.truncations = [
            replace(end, features=normalize_features(end.features, mean, deviation))
            for end in rollout.truncations
        ]
        return normalized

    def update(self, rollout: Rollout) -> None:
        """Add the features of a rollout."""
        self.moments.update(rollout.features[: rollout.steps][rollout.counted[: rollout.steps]])


class RewardNormalizer:
    """Rewards divided by the deviation of the discounted returns so far."""

    def __init__(self, n_envs: int, gamma: float) -> None:
        """Start with the rewards as they are."""
        self.moments = RunningMoments(1)
        self.returns: Float64s = np.zeros(n_envs)
        self._gamma = gamma

    def apply(self, rollout: Rollout) -> Rollout:
        """A rollout with normalized rewards; its own rewards are added to the moments first."""
        returns = np.zeros((rollout.steps, len(self.returns)))
        for step in range(rollout.steps):
            self.returns = self._gamma * self.returns + rollout.rewards[step]
            returns[step] = self.returns
            self.returns[rollout.dones[step]] = 0
        self.moments.update(returns[rollout.counted[: rollout.steps]][:, None])
        normalized = copy.copy(rollout)
        normalized.rewards = rollout.rewards / self.moments.deviation
        return normalized


class NormalizedActor(Actor):
    """Actor that normalizes features by the moments among its weights."""

    def __init__(self, actor: Actor) -> None:
        """Wrap an actor."""
        self._actor = actor
        self._moments: tuple[Float32s, Float32s] | None = None

    @property
    def state(self) -> Float32s | None:
        """Recurrent state of the actor."""
        return self._actor.state

    def load_state(self, state: Float32s) -> None:
        """Set the recurrent state."""
        self._actor.load_state(state)

    def weights(self) -> Arrays:
        """Weights and moments by name."""
        assert self._moments is not None
        mean, deviation = self._moments
        return self._actor.weights() | {FEATURE_MEAN: mean, FEATURE_DEVIATION: deviation}

    def load_weights(self, weights: Arrays) -> None:
        """Copy weights and moments."""
        self._moments = feature_moments(weights)
        self._actor.load_weights(weights)

    def logits(self, features: Float32s, masks: Bytes | None) -> Float32s:
        """Logits of the actions before masking."""
        return self._actor.logits(self._normalized(features), masks)

    def sample(
        self,
        features: Float32s,
        masks: Bytes | None,
        uniforms: Float32s,
        actions: Int64s,
        log_probs: Float32s,
    ) -> None:
        """Sample one action per environment."""
        self._actor.sample(self._normalized(features), masks, uniforms, actions, log_probs)

    def reset(self, env_ids: Int64s) -> None:
        """Clear the recurrent state of environments whose episode ended."""
        self._actor.reset(env_ids)

    def close(self) -> None:
        """Close the actor."""
        self._actor.close()

    def _normalized(self, features: Float32s) -> Float32s:
        assert self._moments is not None
        return normalize_features(features, *self._moments)


class Normalization:
    """Feature and reward normalization; either may be off."""

    def __init__(self, config: PpoConfig, shape: RolloutShape) -> None:
        """Create the normalizers that a configuration asks for."""
        self._features = (
            FeatureNormalizer(shape.features) if config.normalize_observations else None
        )
        self._rewards = (
            RewardNormalizer(shape.n_envs, config.gamma) if config.normalize_returns else None
        )

    def weights(self) -> Arrays:
        """What the policy needs to play, by its names in a checkpoint."""
        return {} if self._features is None else self._features.weights()

    def apply(self, rollout: Rollout) -> Rollout:
        """The rollout to learn from."""
        if self._features is not None:
            rollout = self._features.apply(rollout)
        return rollout if self._rewards is None else self._rewards.apply(rollout)

    def update(self, rollout: Rollout) -> None:
        """Add a rollout, as it was collected, to the moments of the features."""
        if self._features is not None:
            self._features.update(rollout)

    def arrays(self) -> Arrays:
        """State by its names in a checkpoint."""
        arrays = self.weights()
        if self._features is not None:
            arrays["normalizer.features"] = self._features.moments.array()
        if self._rewards is not None:
            arrays["normalizer.rewards"] = self._rewards.moments.array()
            arrays["normalizer.returns"] = self._rewards.returns.copy()
        return arrays

    def load_arrays(self, arrays: Arrays) -> None:
        """Restore the state in a checkpoint."""
        if self._features is not None:
            self._features.moments.load_array(arrays["normalizer.features"])
        if self._rewards is not None:
            self._rewards.moments.load_array(arrays["normalizer.rewards"])
            if arrays["normalizer.returns"].shape == self._rewards.returns.shape:
                self._rewards.returns[:] = arrays["normalizer.returns"]

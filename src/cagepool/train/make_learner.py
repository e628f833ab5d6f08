"""Choice of the learner and the actor by the configuration; libraries are loaded on demand."""

from cagepool._optional import require
from cagepool.train.config import PpoConfig
from cagepool.train.learner import Learner
from cagepool.train.native_learner import NativeActor, NativeLearner
from cagepool.train.normalization import (
    FeatureNormalizer,
    Normalization,
    NormalizedActor,
    RewardNormalizer,
)
from cagepool.train.rollout import Actor, RolloutShape


def make_learner(config: PpoConfig, shape: RolloutShape, seed: int) -> Learner:
    """Create the learner of a configuration, with weights drawn from the seed.

    Raises:
        ValueError: the network or the device cannot be used.
    """
    if is_native(config):
        return NativeLearner(config, shape, seed)
    with require(_feature(config), "train", "torch"):
        from cagepool.train.torch_learner import TorchLearner  # noqa: PLC0415 - slow import

        return TorchLearner(config, shape, seed)


def make_actor(config: PpoConfig, shape: RolloutShape) -> Actor:
    """Create an actor for rollouts of this shape; load weights before it samples.

    Raises:
        ValueError: the network or the device cannot be used.
    """
    actor = _plain_actor(config, shape)
    return NormalizedActor(actor) if config.normalize_observations else actor


def make_normalization(config: PpoConfig, shape: RolloutShape) -> Normalization:
    """Create the normalizers that a configuration asks for."""
    return Normalization(
        FeatureNormalizer(shape.features) if config.normalize_observations else None,
        RewardNormalizer(shape.n_envs, config.gamma) if config.normalize_returns else None,
    )


def _plain_actor(config: PpoConfig, shape: RolloutShape) -> Actor:
    if config.network == "mlp":  # also of the torch learner: the weights have the same names
        return NativeActor(config, shape)
    with require(_feature(config), "train", "torch"):
        from cagepool.train.torch_learner import TorchActor  # noqa: PLC0415 - slow import

        return TorchActor(config, shape)


def is_native(config: PpoConfig) -> bool:
    """Whether the native learner trains: if asked for, or by default for MLPs on the CPU."""
    fits = config.network == "mlp" and config.device in ("auto", "cpu")
    return config.learner == "native" or (config.learner == "auto" and fits)


def _feature(config: PpoConfig) -> str:
    return f"learner torch (network {config.network}, device {config.device})"

"""Choice of the learner and the actor by the configuration; libraries are loaded on demand."""

from cagepool.train.config import PpoConfig
from cagepool.train.learner import Learner
from cagepool.train.native_learner import NativeActor, NativeLearner
from cagepool.train.rollout import Actor, RolloutShape


def make_learner(config: PpoConfig, shape: RolloutShape, seed: int) -> Learner:
    """Create the learner of a configuration, with weights drawn from the seed."""
    return NativeLearner(config, shape, seed)


def make_actor(config: PpoConfig, shape: RolloutShape) -> Actor:
    """Create an actor for rollouts of this shape; load weights before it samples."""
    return NativeActor(config, shape)

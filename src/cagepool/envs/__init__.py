"""Gymnasium environments: native games, and any environment in worker processes."""

from cagepool.envs.async_api import Episode, Ready, episodes
from cagepool.envs.feature_wrapper import FeatureVectorEnv
from cagepool.envs.make import make, make_vec
from cagepool.envs.native import NativeVectorEnv
from cagepool.envs.reward_hook import RewardFunction, RewardStep
from cagepool.envs.single import Cage2Env, register
from cagepool.envs.workers import WorkerVectorEnv

__all__ = [
    "Cage2Env",
    "Episode",
    "FeatureVectorEnv",
    "NativeVectorEnv",
    "Ready",
    "RewardFunction",
    "RewardStep",
    "WorkerVectorEnv",
    "episodes",
    "make",
    "make_vec",
]

register()

"""Gymnasium faces of the games."""

from cagepool.envs.async_api import Ready
from cagepool.envs.cage2_env import Cage2Env
from cagepool.envs.episodes import Episode, episodes
from cagepool.envs.feature_wrapper import RememberingVectorEnv
from cagepool.envs.make import make_vec
from cagepool.envs.native import NativeVectorEnv
from cagepool.envs.registration import register
from cagepool.envs.workers import WorkerVectorEnv

__all__ = [
    "Cage2Env",
    "Episode",
    "NativeVectorEnv",
    "Ready",
    "RememberingVectorEnv",
    "WorkerVectorEnv",
    "episodes",
    "make_vec",
]

register()

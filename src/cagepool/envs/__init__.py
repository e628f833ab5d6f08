"""Gymnasium faces of the games."""

from cagepool.envs.episodes import Episode, episodes
from cagepool.envs.free import Ready
from cagepool.envs.make import make_vec
from cagepool.envs.native import NativeVectorEnv
from cagepool.envs.registration import register
from cagepool.envs.remembering import RememberingVectorEnv
from cagepool.envs.single import Cage2Env
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

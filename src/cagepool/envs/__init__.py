"""Gymnasium faces of the games."""

from cagepool.envs.make import make_vec
from cagepool.envs.native import NativeVectorEnv
from cagepool.envs.registration import register
from cagepool.envs.single import Cage2Env

__all__ = ["Cage2Env", "NativeVectorEnv", "make_vec"]

register()

"""Gymnasium faces of the games; Gymnasium itself is imported when one of them is asked for."""

from importlib import import_module
from typing import TYPE_CHECKING

from cagepool.envs.registration import register_with_gymnasium

if TYPE_CHECKING:
    from cagepool.envs.make import make_vec
    from cagepool.envs.native import NativeVectorEnv
    from cagepool.envs.single import Cage2Env

__all__ = ["Cage2Env", "NativeVectorEnv", "make_vec"]

_HOMES = {"Cage2Env": "single", "NativeVectorEnv": "native", "make_vec": "make"}

register_with_gymnasium()


def __getattr__(name: str) -> object:
    """One of the public names, from the module that has it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

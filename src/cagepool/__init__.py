"""Many games of CAGE Challenge 2 at once: exact, native, behind Gymnasium's interfaces."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cagepool.envs import make_vec

__version__ = version("cagepool")
__all__ = ["__version__", "make_vec"]


def __getattr__(name: str) -> object:
    """`make_vec`, imported when it is first asked for: the package does not need Gymnasium."""
    if name != "make_vec":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("cagepool.envs").make_vec

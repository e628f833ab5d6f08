"""Many games of CAGE Challenge 2 at once: exact, native, behind Gymnasium's interfaces."""

from importlib.metadata import version

from cagepool.envs import make_vec
from cagepool.evaluate.policy import load

__version__ = version("cagepool")
__all__ = ["__version__", "load", "make_vec"]

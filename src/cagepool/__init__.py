"""Many games of CAGE Challenge 2 at once: exact, native, behind Gymnasium's interfaces."""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from cagepool.envs import make_vec

if TYPE_CHECKING:
    from cagepool.evaluate.policy import load

__version__ = version("cagepool")
__all__ = ["__version__", "load", "make_vec"]


def __getattr__(name: str) -> Any:
    """Import `load` on first use: environments alone need none of its libraries."""
    if name != "load":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cagepool.evaluate.policy import load  # noqa: PLC0415

    return load

"""CAGE Challenge 2, exact and natively fast, as Gymnasium environments."""

from typing import TYPE_CHECKING, Any

from cagepool._lookup import lazy_names
from cagepool.envs import make, make_vec

if TYPE_CHECKING:
    from cagepool.policy.load import load
    from cagepool.scenarios import Scenario

    __version__: str

__all__ = ["Scenario", "__version__", "load", "make", "make_vec"]

# What an environment does not need is imported on first use, since workers import this package.
_lazy_name = lazy_names(
    __name__, {"load": "cagepool.policy.load", "Scenario": "cagepool.scenarios"}
)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415

        return version("cagepool")
    return _lazy_name(name)

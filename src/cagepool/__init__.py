"""CAGE Challenge 2, exact and natively fast, as Gymnasium environments."""

from typing import TYPE_CHECKING, Any

from cagepool.envs import make, make_vec

if TYPE_CHECKING:
    from cagepool.evaluate.load import load
    from cagepool.scenarios import Scenario

    __version__: str

__all__ = ["Scenario", "__version__", "load", "make", "make_vec"]


def __getattr__(name: str) -> Any:
    """Import on first use what an environment does not need, since workers import this package."""
    if name == "load":
        from cagepool.evaluate.load import load  # noqa: PLC0415

        return load
    if name == "Scenario":
        from cagepool.scenarios import Scenario  # noqa: PLC0415

        return Scenario
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415

        return version("cagepool")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

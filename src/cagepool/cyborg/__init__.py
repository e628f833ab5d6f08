"""CybORG, the original simulator: Gymnasium environment, evaluation engine, agent, parity.

Names are imported on first use. CybORG itself is imported when an environment or engine is made.
See docs/cyborg.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cagepool.cyborg.agent import CybORGAgent
    from cagepool.cyborg.env import CybORGEnv
    from cagepool.cyborg.locate import VARIABLE, CybORGNotFoundError

__all__ = ["VARIABLE", "CybORGAgent", "CybORGEnv", "CybORGNotFoundError"]


_HOMES = {
    "CybORGAgent": "cagepool.cyborg.agent",
    "CybORGEnv": "cagepool.cyborg.env",
    "CybORGNotFoundError": "cagepool.cyborg.locate",
    "VARIABLE": "cagepool.cyborg.locate",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

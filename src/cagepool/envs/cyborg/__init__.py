"""CybORG itself as a Gymnasium environment; nothing of it is imported before one is made."""

from cagepool.envs.cyborg.checkout import VARIABLE, CybORGNotFoundError
from cagepool.envs.cyborg.single import CybORGEnv

__all__ = ["VARIABLE", "CybORGEnv", "CybORGNotFoundError"]

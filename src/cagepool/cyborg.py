"""CybORG beside cagepool: the original as a Gymnasium environment (docs/cyborg.md)."""

from cagepool.envs.cyborg import CybORGEnv, CybORGNotFoundError

__all__ = ["CybORGEnv", "CybORGNotFoundError"]

"""CybORG beside cagepool: the original as a Gymnasium environment, and policies as its agents.

See docs/cyborg.md and docs/evaluation.md.
"""

from cagepool.envs.cyborg import CybORGEnv, CybORGNotFoundError
from cagepool.evaluate.agent import CybORGAgent

__all__ = ["CybORGAgent", "CybORGEnv", "CybORGNotFoundError"]

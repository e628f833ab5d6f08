"""CybORG, the original simulator, as a Gymnasium environment (docs/cyborg.md).

CybORG itself is imported when an environment is made. `cagepool.parity` compares it with the core.
"""

from cagepool.cyborg.env import CybORGEnv
from cagepool.cyborg.locate import VARIABLE, CybORGNotFoundError

__all__ = ["VARIABLE", "CybORGEnv", "CybORGNotFoundError"]

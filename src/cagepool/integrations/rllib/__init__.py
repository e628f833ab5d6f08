"""RLlib on the native games: one pool an env runner, not one process a game."""

from cagepool import _optional

NEEDED = (
    "ray", "torch", "tree", "lz4", "ormsgpack", "pandas", "pyarrow", "pydantic", "scipy",
    "tensorboardX",
)  # fmt: skip

with _optional.needed(__name__, "ray", *NEEDED):
    from cagepool.integrations.rllib.config import ppo_config
    from cagepool.integrations.rllib.pool import RunnerPool

__all__ = ["RunnerPool", "ppo_config"]

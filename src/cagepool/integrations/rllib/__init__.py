"""RLlib on native games: one vector environment per env runner, not one process per game."""

from cagepool import _optional

REQUIRED = (
    "ray", "torch", "tree", "lz4", "ormsgpack", "pandas", "pyarrow", "pydantic", "scipy",
    "tensorboardX",
)  # fmt: skip

with _optional.require(__name__, "ray", *REQUIRED):
    from cagepool.integrations.rllib.config import RunnerPool, ppo_config

__all__ = ["RunnerPool", "ppo_config"]

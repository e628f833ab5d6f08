"""Registers the environment id `cagepool/CAGE2-v0` with Gymnasium."""

from gymnasium.envs import registration

ENVIRONMENT_ID = "cagepool/CAGE2-v0"


def register() -> None:
    """Register the environment, unless it is registered already."""
    if ENVIRONMENT_ID in registration.registry:
        return
    registration.register(
        ENVIRONMENT_ID,
        entry_point="cagepool.envs.cage2_env:Cage2Env",
        vector_entry_point="cagepool.envs.native:NativeVectorEnv",
    )

"""Makes the environment known to Gymnasium, which has had no plugins since 1.0."""

from gymnasium.envs import registration

ENVIRONMENT_ID = "cagepool/CAGE2-v0"


def register() -> None:
    """Enter the environment in Gymnasium's registry, unless it is there."""
    if ENVIRONMENT_ID in registration.registry:
        return
    registration.register(
        ENVIRONMENT_ID,
        entry_point="cagepool.envs.cage2_env:Cage2Env",
        vector_entry_point="cagepool.envs.native:NativeVectorEnv",
    )

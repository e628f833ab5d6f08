"""The games of one of RLlib's env runners."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cagepool.envs.native import NativeVectorEnv
from cagepool.envs.seeding import Seed
from cagepool.types import Infos, Observations


class RunnerPool(NativeVectorEnv):
    """Native games as RLlib makes and seeds them.

    Give this class to `environment()`, the settings of the games as `env_config`, and to
    `env_runners()` `gym_env_vectorize_mode="vector_entry_point"`; `ppo_config` does so.
    """

    def __init__(self, context: Mapping[str, Any]) -> None:
        """Make the games: as many as `num_envs` of the context, whose rest are their settings.

        They start anew in the step after the one that ends them, because RLlib's env runners take
        what they see first after an end for a first observation, whatever was played.
        """
        super().__init__(autoreset="next_step", **{"threads": 1, **context})

    def reset(
        self, *, seed: Seed = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observations, Infos]:
        """Start new episodes, with luck that no other runner has.

        RLlib gives its runners seeds in a row. Were the games of each to get seeds in a row as
        well, game 1 of one runner would be game 0 of the next.
        """
        if isinstance(seed, int | np.integer):
            seed = np.random.SeedSequence(int(seed)).generate_state(self.num_envs).tolist()
        return super().reset(seed=seed, options=options)

"""What red ever holds: the types of hosts by which orders can be told apart."""

from functools import cache

import numpy as np

from cagepool.evaluate.defenders import SCRIPTED, scripted_defender
from cagepool.evaluate.rollout import Trial, game_seeds, opened, played
from cagepool.sim.names import HOST_TYPE, HOSTS, red_class_names
from cagepool.train.config import TrainConfig

EPISODES = 200  # against each of the scripted defenders


@cache
def reached_types(config: TrainConfig) -> set[str]:
    """Types of which red held a host in any game against a scripted defender, asleep or not."""
    held = np.zeros(len(HOSTS), np.bool_)
    trial = Trial(
        episodes=EPISODES, max_steps=config.max_steps, edition=config.edition, green=config.green
    )
    for red in red_class_names(config.red_agent):
        for name in SCRIPTED:
            batch = opened(trial, red, game_seeds(trial, red))
            for _ in played(scripted_defender(name), trial, batch):
                held |= (batch.true_state["access"] > 0).any(axis=0)
    return {
        HOST_TYPE[host]
        for host, is_held in zip(HOSTS, held, strict=True)
        if is_held and host != "User0"
    }

"""A trained policy as a CybORG agent, for CybORG's own evaluation script."""

from pathlib import Path
from typing import Any

import numpy as np

from cagepool import _core
from cagepool.evaluate.load import load
from cagepool.evaluate.policy import Policy


class CybORGAgent:
    """Plays the policy of a run greedily behind CybORG's ChallengeWrapper.

    The class has the methods of CybORG's `BaseAgent`. An MLP needs neither PyTorch nor NumPy 2. An
    agent plays one game at a time; `end_episode` must be called before the next game.
    """

    def __init__(self, run: str | Path, which: str = "best", *, network: str | None = None) -> None:
        """Load a policy; the arguments are those of `cagepool.load`.

        Raises:
            ValueError: the run cannot be read.
        """
        self.policy: Policy = load(run, which, network=network)
        self.end_episode()

    def get_action(self, observation: Any, action_space: Any) -> int:
        """Choose an action for the 52 values of ChallengeWrapper's observation.

        Raises:
            ValueError: the observation or the action space is not that of ChallengeWrapper.
        """
        values = np.asarray(observation, np.float32)
        if values.shape != (_core.OBSERVATION_SIZE,):
            raise ValueError(
                f"an observation must have {_core.OBSERVATION_SIZE} values, as ChallengeWrapper "
                f"shows them; got shape {values.shape}"
            )
        if isinstance(action_space, int) and action_space != _core.ACTION_COUNT:
            raise ValueError(
                f"there must be {_core.ACTION_COUNT} actions, as behind ChallengeWrapper; "
                f"got {action_space}"
            )
        return int(self.policy.act(values[np.newaxis])[0])

    def end_episode(self) -> None:
        """Clear the policy's memory of the game."""
        self.policy.begin(1)

    def train(self, results: Any) -> None:
        """Do nothing: the policy is trained."""

    def set_initial_values(self, action_space: Any, observation: Any) -> None:
        """Do nothing: the policy knows both spaces."""

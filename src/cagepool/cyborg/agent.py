"""A trained policy as an agent of CybORG's, for use in its own evaluation script."""

from pathlib import Path
from typing import Any

import numpy as np

from cagepool import _core
from cagepool.evaluate.policy import Policy, load


class CybORGAgent:
    """Plays the policy of a run, greedily, behind CybORG's ChallengeWrapper.

    It has the methods of CybORG's `BaseAgent`, needs neither PyTorch nor NumPy 2, and plays one
    game at a time: `end_episode` must be called before another begins.
    """

    def __init__(self, run: str | Path, which: str = "best") -> None:
        """Load a policy.

        Raises:
            ValueError: the run cannot be read.
        """
        self.policy: Policy = load(run, which)
        self.end_episode()

    def get_action(self, observation: Any, action_space: Any) -> int:
        """Number of an action, for the 52 values that ChallengeWrapper shows.

        Raises:
            ValueError: the observation or the actions are not those of ChallengeWrapper.
        """
        seen = np.asarray(observation, np.float32)
        if seen.shape != (_core.OBSERVATION_SIZE,):
            raise ValueError(
                f"an observation must have {_core.OBSERVATION_SIZE} values, as ChallengeWrapper "
                f"shows them; got shape {seen.shape}"
            )
        if isinstance(action_space, int) and action_space != _core.ACTION_COUNT:
            raise ValueError(
                f"there must be {_core.ACTION_COUNT} actions, as behind ChallengeWrapper; "
                f"got {action_space}"
            )
        return int(self.policy.act(seen[np.newaxis])[0])

    def end_episode(self) -> None:
        """Forget the game: another one begins."""
        self.policy.begin(1)

    def train(self, results: Any) -> None:
        """Learn nothing."""

    def set_initial_values(self, action_space: Any, observation: Any) -> None:
        """Need nothing: the policy knows both."""

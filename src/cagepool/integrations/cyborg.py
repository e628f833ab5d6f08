"""A trained policy as a CybORG agent, for CybORG's own evaluation script."""

from pathlib import Path
from typing import Any

import numpy as np

from cagepool.policy import Policy, load_run
from cagepool.scenarios import CAGE2, Layout, Scenario, resolve_scenarios
from cagepool.sim.encoder import GameScenarios


class CybORGAgent:
    """Plays the policy of a run greedily behind CybORG's ChallengeWrapper.

    The class has the methods of CybORG's `BaseAgent`. An MLP needs neither PyTorch nor NumPy 2. An
    agent plays one game at a time; `end_episode` must be called before the next game.
    """

    def __init__(
        self,
        run: str | Path,
        which: str = "best",
        *,
        network: str | None = None,
        scenario: Scenario | str | Path | None = None,
    ) -> None:
        """Load a policy; the first arguments are those of `cagepool.load`.

        Args:
            run: Run folder.
            which: `best` or `last`.
            network: `module:Class` of a run with a network of its own.
            scenario: Scenario that CybORG plays, or its file; by default Scenario2.

        Raises:
            ValueError: the run cannot be read, or its policy cannot play that scenario.
        """
        self.policy: Policy = load_run(run, which, network=network)
        (self._scenario,) = resolve_scenarios(CAGE2 if scenario is None else scenario)
        self.end_episode()

    def get_action(self, observation: Any, action_space: Any) -> int:
        """Choose an action for ChallengeWrapper's observation, four values per host.

        Raises:
            ValueError: the observation or the action space is not that of ChallengeWrapper.
        """
        values = np.asarray(observation, np.float32)
        size, actions = 4 * len(self._scenario.hosts), len(self._scenario.actions)
        if values.shape != (size,):
            raise ValueError(
                f"an observation must have {size} values, as ChallengeWrapper "
                f"shows them; got shape {values.shape}"
            )
        if isinstance(action_space, int) and action_space != actions:
            raise ValueError(
                f"there must be {actions} actions, as behind ChallengeWrapper; got {action_space}"
            )
        return int(self.policy.act(values[np.newaxis])[0])

    def end_episode(self) -> None:
        """Clear the policy's memory of the game."""
        layout = Layout.of([self._scenario])
        self.policy.begin(GameScenarios((self._scenario,), layout, np.zeros(1, np.int32)))

    def train(self, results: Any) -> None:
        """Do nothing: the policy is trained."""

    def set_initial_values(self, action_space: Any, observation: Any) -> None:
        """Do nothing: the policy knows both spaces."""

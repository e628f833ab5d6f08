"""CybORG's CAGE Challenge 2 as a Gymnasium environment."""

import os
from operator import index
from typing import Any, SupportsIndex

import numpy as np
from gymnasium import Env
from numpy.typing import NDArray

from cagepool import _core
from cagepool.cyborg import locate as checkouts
from cagepool.cyborg.rng import Luck
from cagepool.cyborg.true_state import TruthReader
from cagepool.envs import spaces
from cagepool.sim.names import RED_ALIASES, TRAINABLE_REDS, edition_code
from cagepool.types import Infos, Observations, Records


class CybORGEnv(Env[Observations, SupportsIndex]):
    """Scenario2 of CybORG behind its challenge wrapper: the original of the native games.

    Observations, actions, rewards and the true state are those of `Cage2Env`; the luck is
    CybORG's, so that a seed plays another game here than there. Environments of one process have
    their own luck each, and leave Python's global generator as they find it.
    """

    def __init__(
        self,
        *,
        red: str = "B_lineAgent",
        green: bool = False,
        max_steps: int = 100,
        edition: str | None = None,
        checkout: str | os.PathLike[str] | None = None,
    ) -> None:
        """Make the game; it must be reset before the first step.

        Args:
            red: `B_lineAgent`, `RedMeanderAgent`, `SleepAgent`, or an alias of these.
            green: Whether GreenAgent scans hosts.
            max_steps: Steps of an episode.
            edition: What the CybORG found must play; without one, either will do.
            checkout: Folder of CybORG; without one, the environment variable `CAGEPOOL_CYBORG`
                names it, or CybORG is installed.

        Raises:
            CybORGNotFoundError: it is not there, or cannot be imported.
            ValueError: a setting is not one that CybORG knows.
        """
        self.red = _checked_red(red)
        if not 1 <= index(max_steps) <= _core.MAX_STEPS:
            raise ValueError(f"max_steps must be from 1 to {_core.MAX_STEPS}, got {max_steps}")
        self.green = green
        self.max_steps = index(max_steps)
        package = checkouts.load(checkout)
        self.edition = _checked_edition(edition, checkouts.edition(package))
        self.observation_space = spaces.observation_space("float32")
        self.action_space = spaces.action_space()
        self._steps_left: int | None = None
        self._luck = Luck()
        with self._luck:
            self._open(str(checkouts.folder(package) / "Shared" / "Scenarios" / "Scenario2.yaml"))

    def _open(self, scenario: str) -> None:
        agents = {"Red": checkouts.part(f"Agents.{self.red}")}
        if self.green:
            agents["Green"] = checkouts.part("Agents.GreenAgent")
        self.cyborg: Any = checkouts.part("CybORG.CybORG")(scenario, "sim", agents=agents)
        wrapper = checkouts.part("Agents.Wrappers.ChallengeWrapper")("Blue", self.cyborg)
        self._wrapper = wrapper
        table = wrapper.env.env.env  # below Gym's wrapper and that of the actions
        controller = self.cyborg.environment_controller
        self._truth = TruthReader(controller, table, self.red, self.edition)

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002 - Gymnasium's signature
    ) -> tuple[Observations, Infos]:
        """Start a new episode.

        Args:
            seed: What follows is what `random.seed(seed)` before CybORG's own reset would give;
                without one, the luck of the last episode goes on.
            options: None are known.
        """
        super().reset(seed=seed)
        if seed is not None:
            self._luck.seed(seed)
        with self._luck:
            observation = self._wrapper.reset()
        self._steps_left = self.max_steps
        return _as_floats(observation), {}

    def step(self, action: SupportsIndex) -> tuple[Observations, float, bool, bool, Infos]:
        """Play one action of blue's.

        Raises:
            IndexError: the action is out of range; nothing was played.
            RuntimeError: the episode is over or has not begun.
        """
        number = index(action)
        if not 0 <= number < _core.ACTION_COUNT:
            raise IndexError(f"an action must be below {_core.ACTION_COUNT}, got {number}")
        if not self._steps_left:
            never = self._steps_left is None
            raise RuntimeError(
                "reset must come before step"
                if never
                else "the game is over; reset it before the next step"
            )
        with self._luck:
            observation, reward, _, _ = self._wrapper.step(number)
        self._steps_left -= 1
        return _as_floats(observation), float(reward), False, self._steps_left == 0, {}

    def true_state(self) -> Records:
        """What red holds and what blue believes, shape (), fields of `sim.layout.TRUE_STATE`."""
        return self._truth.read()

    def true_state_dict(self) -> dict[str, Any]:
        """CybORG's own dictionary of the true state."""
        dictionary: dict[str, Any] = self.cyborg.get_agent_state("True")
        return dictionary


def _checked_red(red: str) -> str:
    name = RED_ALIASES.get(red, red)
    if name not in TRAINABLE_REDS:
        known = ", ".join([*TRAINABLE_REDS, *RED_ALIASES])
        raise ValueError(f"red must be one of {known}; got {red!r}")
    return name


def _checked_edition(wanted: str | None, found: str) -> str:
    if wanted is not None:
        edition_code(wanted)
    if wanted not in (None, found):
        raise ValueError(f"edition must be that of the CybORG found, {found}; got {wanted!r}")
    return found


def _as_floats(observation: NDArray[Any]) -> Observations:
    return observation.astype(np.float32)

"""CybORG as a Gymnasium environment."""

import os
import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from operator import index
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, SupportsIndex, cast

import numpy as np
from gymnasium import Env
from gymnasium.spaces import Box, Discrete, Space
from numpy.typing import NDArray

from cagepool import _core
from cagepool.cyborg import locate
from cagepool.cyborg.true_state import TrueStateReader
from cagepool.scenarios import CAGE2, Scenario
from cagepool.sim.names import OFFICIAL_REDS, RED_ALIASES, edition_code
from cagepool.sim.settings import DEFAULT_GREEN, DEFAULT_MAX_STEPS, DEFAULT_RED
from cagepool.types import Infos, Observations, Records

GIVEN = "given"
"""Red setting with which the caller plays red."""

_HOST_BY_ADDRESS = ("DiscoverNetworkServices", "ExploitRemoteService")


class GivenRed:
    """Plays the CybORG action in `action`; has the methods of CybORG's `BaseAgent`."""

    action: Any = None  # set before each step

    def get_action(self, observation: Any, action_space: Any) -> Any:  # noqa: ARG002 - CybORG's signature
        """Return the action of the caller, whatever red sees."""
        return self.action

    def train(self, results: Any) -> None:
        """Do nothing."""

    def end_episode(self) -> None:
        """Do nothing."""

    def set_initial_values(self, action_space: Any, observation: Any) -> None:
        """Do nothing."""


def make_red_action(controller: Any, name: str) -> Any:
    """CybORG's object of a red action such as `ExploitRemoteService User1`.

    The action may be about a host or subnet that red does not know; CybORG then plays an
    `InvalidAction` in its place.
    """
    verb, _, target = name.partition(" ")
    make_action = locate.import_object(f"Shared.Actions.{verb}")
    if not target:
        return make_action()
    settings = {"session": 0, "agent": "Red"}
    if verb == "DiscoverRemoteSystems":
        return make_action(subnet=controller.subnet_cidr_map[target], **settings)
    if verb in _HOST_BY_ADDRESS:
        return make_action(ip_address=controller.hostname_ip_map[target], **settings)
    return make_action(hostname=target, **settings)


class CybORGEnv(Env[Observations, SupportsIndex]):
    """CybORG behind its ChallengeWrapper: Scenario2, or another scenario.

    Observations, actions, rewards and the true state are those of `Cage2Env`. CybORG has its own
    random numbers: a seed plays another game here than there. Each environment of a process keeps
    its own random state, and leaves Python's global generator unchanged.
    """

    def __init__(  # noqa: PLR0913 - all settings, so that help and editors show them
        self,
        *,
        scenario: Scenario | str | os.PathLike[str] | None = None,
        red: str = DEFAULT_RED,
        green: bool = DEFAULT_GREEN,
        max_steps: int = DEFAULT_MAX_STEPS,
        edition: str | None = None,
        checkout: str | os.PathLike[str] | None = None,
    ) -> None:
        """Create the game; it must be reset before the first step.

        Args:
            scenario: A `Scenario` or its file; by default CybORG's Scenario2.
            red: `B_lineAgent`, `RedMeanderAgent`, `SleepAgent`, or an alias of these. With `given`
                the caller plays red.
            green: Whether GreenAgent scans hosts.
            max_steps: Steps per episode.
            edition: Edition that CybORG must have; by default either is accepted.
            checkout: Folder of CybORG; by default the folder in the environment variable
                `CAGEPOOL_CYBORG`, or the installed package.

        Raises:
            CybORGNotFoundError: CybORG is missing or cannot be imported.
            ValueError: a setting is unknown to CybORG, or the red agent cannot play the scenario.
        """
        self.red = _checked_red(red)
        if not 1 <= index(max_steps) <= _core.MAX_STEPS:
            raise ValueError(f"max_steps must be from 1 to {_core.MAX_STEPS}, got {max_steps}")
        self.green = green
        self.max_steps = index(max_steps)
        file = None if scenario is None or isinstance(scenario, Scenario) else Path(scenario)
        self.scenario = Scenario.load(file) if file else cast("Scenario | None", scenario) or CAGE2
        self.scenario.check_red(self.red)
        package = locate.load(checkout)
        self.edition = _checked_edition(edition, locate.detect_edition(package))
        observation_size = 4 * len(self.scenario.hosts)
        self.observation_space = cast("Space[Observations]", Box(0, 1, (observation_size,)))
        self.action_space = Discrete(len(self.scenario.actions))
        self._steps_left: int | None = None
        self._random_state = IsolatedRandom()
        if scenario is None:
            file = locate.package_folder(package) / "Shared" / "Scenarios" / "Scenario2.yaml"
        with self._random_state, open_scenario_file(self.scenario, file) as path:
            self._create_cyborg(path)

    def _create_cyborg(self, path: str) -> None:
        agents = {
            "Blue": locate.import_object("Agents.SleepAgent"),  # never asked
            "Green": locate.import_object(f"Agents.{'GreenAgent' if self.green else 'SleepAgent'}"),
            "Red": GivenRed if self.red == GIVEN else locate.import_object(f"Agents.{self.red}"),
        }
        self.cyborg: Any = locate.import_object("CybORG.CybORG")(path, "sim", agents=agents)
        wrapper = locate.import_object("Agents.Wrappers.ChallengeWrapper")("Blue", self.cyborg)
        self._wrapper = wrapper
        table = wrapper.env.env.env  # BlueTableWrapper, below the Gym and the action wrapper
        controller = self.cyborg.environment_controller
        self.true_state_reader = TrueStateReader(
            controller, table, self.scenario, red=self.red, edition=self.edition
        )

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002 - Gymnasium's signature
    ) -> tuple[Observations, Infos]:
        """Start a new episode.

        Args:
            seed: Plays the episode that `random.seed(seed)` before CybORG's own reset would give;
                without a seed the environment continues its random stream.
            options: Ignored.
        """
        super().reset(seed=seed)
        if seed is not None:
            self._random_state.seed(seed)
        with self._random_state:
            observation = self._wrapper.reset()
        self._steps_left = self.max_steps
        return _as_floats(observation), {}

    def step(
        self, action: SupportsIndex, red_action: SupportsIndex | None = None
    ) -> tuple[Observations, float, bool, bool, Infos]:
        """Play one action of blue, and one of red if red is `given`.

        Raises:
            IndexError: an action is out of range; nothing was played.
            RuntimeError: the episode is over or has not started.
            ValueError: red is `given` and has no action, or another red has one.
        """
        number = _checked_action(action, len(self.scenario.actions), "an action")
        if self._steps_left is None:
            raise RuntimeError("reset must come before step")
        if self._steps_left == 0:
            raise RuntimeError("the game is over; reset it before the next step")
        self._set_red_action(red_action)
        with self._random_state:
            observation, reward, _, _ = self._wrapper.step(number)
        self._steps_left -= 1
        return _as_floats(observation), float(reward), False, self._steps_left == 0, {}

    def _set_red_action(self, red_action: SupportsIndex | None) -> None:
        if (red_action is None) == (self.red == GIVEN):
            got = "none" if red_action is None else f"action {red_action} and red={self.red!r}"
            raise ValueError(f"red must have an action exactly if red is 'given', got {got}")
        if red_action is not None:
            names = self.red_action_names
            number = _checked_action(red_action, len(names), "a red action")
            controller = self.cyborg.environment_controller
            agent = controller.agent_interfaces["Red"].agent
            agent.action = make_red_action(controller, names[number])

    @property
    def action_names(self) -> list[str]:
        """Names of the actions, as CybORG has them."""
        return [str(action) for action in self._wrapper.env.env.possible_actions]

    @property
    def red_action_names(self) -> tuple[str, ...]:
        """Names of the actions of a red that is `given`, as in native games."""
        return self.scenario.red_actions

    def true_state(self) -> Records:
        """Red's access and blue's table, shape (), with the fields of the native true state."""
        return self.true_state_reader.read()

    def true_state_dict(self) -> dict[str, Any]:
        """True state as the dictionary that CybORG builds."""
        dictionary: dict[str, Any] = self.cyborg.get_agent_state("True")
        return dictionary


class IsolatedRandom:
    """Isolates Python's global random generator, from which CybORG draws.

    Inside the `with` block the generator has the state of this object, after the block its former
    state, so that environments and the caller share no random numbers. The generator is global to
    all threads: only one thread may be in a block.
    """

    def __init__(self) -> None:
        """Start from a random state."""
        self._state = random.Random().getstate()

    def seed(self, seed: int) -> None:
        """Set the state that `random.seed` would set."""
        self._state = random.Random(seed).getstate()

    def __enter__(self) -> None:
        self._outer_state = random.getstate()
        random.setstate(self._state)

    def __exit__(self, *_: object) -> None:
        self._state = random.getstate()
        random.setstate(self._outer_state)


def _checked_action(action: SupportsIndex, count: int, noun: str) -> int:
    number = index(action)
    if not 0 <= number < count:
        raise IndexError(f"{noun} must be below {count}, got {number}")
    return number


def _checked_red(red: str) -> str:
    name = RED_ALIASES.get(red, red)
    if name not in (*OFFICIAL_REDS, GIVEN):
        known = ", ".join([*OFFICIAL_REDS, *RED_ALIASES, GIVEN])
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


@contextmanager
def open_scenario_file(scenario: Scenario, file: Path | None) -> Iterator[str]:
    """Path of a scenario's file, for CybORG to load inside the `with` block.

    Args:
        scenario: The scenario.
        file: From which the scenario was read; by default it is saved to a temporary folder.
    """
    with TemporaryDirectory(prefix="cagepool-") as folder:
        path = file or Path(folder) / "scenario.yaml"
        if file is None:
            scenario.save(path)
        with _added_images(scenario.own_images), _compiled_parser():
            yield str(path)


@contextmanager
def _added_images(images: Mapping[str, Any]) -> Iterator[None]:
    """Let CybORG know further images while it loads a scenario.

    CybORG reads images from its own folder only. That folder stays as it is: the method that reads
    them is replaced inside the `with` block.
    """
    if not images:
        yield
        return
    controller: Any = locate.import_object("Simulator.SimulationController.SimulationController")
    original = controller._parse_scenario  # noqa: SLF001 - CybORG has no public way

    def parse_scenario(self: Any, path: str, scenario_mod: Any = None) -> Any:
        content = super(controller, self)._parse_scenario(path, scenario_mod)
        for host in content["Hosts"].values():
            name = host.pop("image")
            host.update(deepcopy(dict(images[name])) if name in images else _built_in_image(name))
        return content

    controller._parse_scenario = parse_scenario  # noqa: SLF001
    try:
        yield
    finally:
        controller._parse_scenario = original  # noqa: SLF001


@contextmanager
def _compiled_parser() -> Iterator[None]:
    """Let CybORG read YAML with libyaml's parser, which is much faster than PyYAML's own."""
    yaml: Any = sys.modules["yaml"]  # that CybORG has imported
    original = yaml.FullLoader
    yaml.FullLoader = getattr(yaml, "CFullLoader", original)
    try:
        yield
    finally:
        yaml.FullLoader = original


def _built_in_image(name: str) -> Any:
    """Content of an image file of the loaded CybORG."""
    folder = locate.package_folder(sys.modules["CybORG"]) / "Shared" / "Scenarios" / "images"
    from cagepool.scenarios.yaml_reader import read_yaml  # noqa: PLC0415 - needs msgspec

    index = read_yaml(folder / "images.yaml")
    return read_yaml(folder / f"{index[name]['path']}.yaml")["Test_Host"]

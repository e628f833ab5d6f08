"""CAGE-2 as a PettingZoo environment, in which blue and red both learn."""

from typing import Any, TypeAlias, Unpack

import gymnasium as gym
import numpy as np

from cagepool import _optional
from cagepool.envs import Cage2Env
from cagepool.envs.settings import EnvKeywords
from cagepool.envs.single import METADATA, RenderedGame
from cagepool.sim.red_observation import red_observations, red_space

with _optional.require("cagepool.integrations.pettingzoo", "pettingzoo", "pettingzoo"):
    from pettingzoo.utils.conversions import parallel_to_aec
    from pettingzoo.utils.env import AECEnv, ParallelEnv

BLUE, RED = "blue", "red"
AgentDicts: TypeAlias = dict[str, dict[str, Any]]


def env(**settings: Any) -> AECEnv:
    """The turn-based (AEC) form, by PettingZoo's own conversion; settings of `parallel_env`."""
    return parallel_to_aec(parallel_env(**settings))


class parallel_env(ParallelEnv):  # type: ignore[misc] # noqa: N801 - PettingZoo's name
    """One game with two agents, `blue` and `red`.

    Observations are dictionaries of `observation` and `action_mask`; masks are in the infos too.
    Red's reward is the negative of blue's.
    """

    metadata: dict[str, Any] = {**METADATA, "name": "cagepool_cage2_v0", "is_parallelizable": True}  # noqa: RUF012 - PettingZoo's form

    def __init__(self, **settings: Unpack[EnvKeywords]) -> None:
        """Make the game with settings of `cagepool.make` other than `red`.

        Raises:
            ValueError: `red` is given, or a setting has an unknown value.
        """
        if settings.get("red", "given") != "given":
            raise ValueError(f"red is played by its own agent here, got red={settings['red']!r}")
        settings["red"] = "given"
        self._game = Cage2Env(**settings)
        self.render_mode = self._game.render_mode
        self.possible_agents = [BLUE, RED]
        self.agents: list[str] = []
        red = red_space(self._game.batch)
        self.action_spaces = {
            BLUE: self._game.action_space,
            RED: gym.spaces.Discrete(red.actions),
        }
        red_box = gym.spaces.Box(0, 1, (red.observation_size,))
        self.observation_spaces = {
            BLUE: _masked_space(self._game.observation_space, len(self._game.batch.layout.actions)),
            RED: _masked_space(red_box, red.actions),
        }

    @property
    def game(self) -> Cage2Env:
        """The underlying environment, which has the true state and snapshots."""
        return self._game

    def observation_space(self, agent: str) -> gym.Space[Any]:
        """Observation space of an agent."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.Space[Any]:
        """Action space of an agent; names are in `Scenario.actions` and `Scenario.red_actions`."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[AgentDicts, AgentDicts]:
        """Start a new episode; options are ignored."""
        observation, _ = self._game.reset(seed=seed, options=options)
        self.agents = [*self.possible_agents]
        return self._observe(observation)

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[AgentDicts, dict[str, float], dict[str, bool], dict[str, bool], AgentDicts]:
        """Play one action per agent; `agents` is empty after the last step of an episode.

        Raises:
            IndexError: an action is out of range; nothing was played.
            ValueError: an agent has no action.
        """
        missing = [agent for agent in self.possible_agents if agent not in actions]
        if missing:
            raise ValueError(f"each agent must have an action, got none of {', '.join(missing)}")
        observation, reward, _, truncated, _ = self._game.step(actions[BLUE], actions[RED])
        agents = self.agents
        if truncated:
            self.agents = []
        observations, infos = self._observe(observation)
        rewards = {BLUE: reward, RED: -reward}
        return (
            observations,
            rewards,
            dict.fromkeys(agents, False),
            dict.fromkeys(agents, truncated),
            infos,
        )

    def render(self) -> RenderedGame:
        """Render the game."""
        return self._game.render()

    def close(self) -> None:
        """Release the game."""
        self._game.close()

    def _observe(self, observation: Any) -> tuple[AgentDicts, AgentDicts]:
        """Observations and infos per agent."""
        red_view = red_observations(self._game.batch)
        masks = {
            BLUE: self._game.action_masks().astype(np.int8),
            RED: red_view.masks[0].astype(np.int8),
        }
        values = {BLUE: observation, RED: red_view.observations[0]}
        return (
            {agent: {"observation": values[agent], "action_mask": masks[agent]} for agent in masks},
            {agent: {"action_mask": masks[agent]} for agent in masks},
        )


def _masked_space(observation: gym.Space[Any], actions: int) -> gym.Space[Any]:
    mask = gym.spaces.Box(0, 1, (actions,), np.int8)
    return gym.spaces.Dict({"observation": observation, "action_mask": mask})

"""CAGE-2 as a game of two learners, for PettingZoo."""

from typing import Any, TypeAlias, Unpack

import gymnasium as gym
import numpy as np

from cagepool import _core, _optional
from cagepool.envs import Cage2Env
from cagepool.envs.settings import METADATA, GameSettings, RenderMode
from cagepool.sim.red_observation import RED_OBSERVATION_SIZE, red_observations

with _optional.needed("cagepool.integrations.pettingzoo", "pettingzoo", "pettingzoo"):
    from pettingzoo.utils.conversions import parallel_to_aec
    from pettingzoo.utils.env import AECEnv, ParallelEnv

BLUE, RED = "blue", "red"
Sights: TypeAlias = dict[str, dict[str, Any]]


def env(**settings: Any) -> AECEnv:
    """The game in turns, by PettingZoo's own conversion; settings as of `parallel_env`."""
    return parallel_to_aec(parallel_env(**settings))


class parallel_env(ParallelEnv):  # type: ignore[misc] # noqa: N801 - what PettingZoo calls it
    """One game in which blue and red are both played from outside.

    Observations are dictionaries of `observation` and `action_mask`; masks are in the infos too.
    Red's reward is what blue loses.
    """

    metadata: dict[str, Any] = {**METADATA, "name": "cagepool_cage2_v0", "is_parallelizable": True}  # noqa: RUF012 - as PettingZoo has it

    def __init__(
        self, *, render_mode: RenderMode | None = None, **settings: Unpack[GameSettings]
    ) -> None:
        """Make the game, as `sim.BatchConfig` says.

        Raises:
            ValueError: a red agent is named, or a setting is not one that is known.
        """
        if settings.get("red", "given") != "given":
            raise ValueError(f"red is played by its own agent here, got red={settings['red']!r}")
        settings["red"] = "given"
        self._game = Cage2Env(render_mode=render_mode, **settings)
        self.render_mode = render_mode
        self.possible_agents = [BLUE, RED]
        self.agents: list[str] = []
        self.observation_spaces = {
            BLUE: _sight(self._game.observation_space, _core.ACTION_COUNT),
            RED: _sight(gym.spaces.Box(0, 1, (RED_OBSERVATION_SIZE,)), _core.RED_ACTION_COUNT),
        }
        self.action_spaces = {
            BLUE: gym.spaces.Discrete(_core.ACTION_COUNT),
            RED: gym.spaces.Discrete(_core.RED_ACTION_COUNT),
        }

    @property
    def game(self) -> Cage2Env:
        """The game behind it, with its true state and snapshots."""
        return self._game

    def observation_space(self, agent: str) -> gym.Space[Any]:
        """What an agent sees."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.Space[Any]:
        """What an agent can do; see `sim.names`."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Sights, Sights]:
        """Start a new episode; no options are known."""
        seen, _ = self._game.reset(seed=seed, options=options)
        self.agents = [*self.possible_agents]
        return self._sights(seen)

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[Sights, dict[str, float], dict[str, bool], dict[str, bool], Sights]:
        """Play an action of each; none is left once the horizon is reached.

        Raises:
            IndexError: an action is out of range; nothing was played.
            ValueError: an agent has no action.
        """
        missing = [agent for agent in self.possible_agents if agent not in actions]
        if missing:
            raise ValueError(f"each agent must have an action, got none of {', '.join(missing)}")
        seen, reward, _, truncated, _ = self._game.step(actions[BLUE], actions[RED])
        playing = self.agents
        if truncated:
            self.agents = []
        observations, infos = self._sights(seen)
        rewards = {BLUE: reward, RED: -reward}
        return (
            observations,
            rewards,
            dict.fromkeys(playing, False),
            dict.fromkeys(playing, truncated),
            infos,
        )

    def render(self) -> str:
        """A picture of the game."""
        return self._game.render()

    def close(self) -> None:
        """Let go of the game."""
        self._game.close()

    def _sights(self, seen: Any) -> tuple[Sights, Sights]:
        """Observations and infos."""
        of_red = red_observations(self._game.batch)
        masks = {
            BLUE: self._game.action_masks().astype(np.int8),
            RED: of_red.masks[0].astype(np.int8),
        }
        values = {BLUE: seen, RED: of_red.observations[0]}
        return (
            {agent: {"observation": values[agent], "action_mask": masks[agent]} for agent in masks},
            {agent: {"action_mask": masks[agent]} for agent in masks},
        )


def _sight(observation: gym.Space[Any], actions: int) -> gym.Space[Any]:
    mask = gym.spaces.Box(0, 1, (actions,), np.int8)
    return gym.spaces.Dict({"observation": observation, "action_mask": mask})

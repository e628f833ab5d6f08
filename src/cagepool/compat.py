"""The names and calls of older documents of CAGE-2, on native games.

`ChallengeWrapper` has the interface of CybORG's wrapper of that name, which follows gym 0.21:
`reset` returns an observation, `step` four results. New code uses `cagepool.make` and `make_vec`.
"""

from typing import Any, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from cagepool import _core
from cagepool.envs.native import NativeVectorEnv
from cagepool.envs.single import Cage2Env
from cagepool.sim.names import action_name, scenario_names
from cagepool.types import Bools, Float64s, Observations

_INSTEAD = {
    "get_attr": "the game is not an object of CybORG: cagepool.make has its attributes",
    "get_ip_map": "hosts have names instead of addresses, cagepool.sim.names.HOSTS",
    "get_rewards": "step returns the reward",
    "get_reward_breakdown": "cagepool.make(reward=...) gets the parts of the reward",
}


class ChallengeWrapper:
    """One native game with the interface of CybORG's ChallengeWrapper for blue.

    As in CybORG, an episode goes on after `done`, until `reset`; without `max_steps` it is never
    done. Observations are float32.
    """

    def __init__(
        self,
        agent_name: str = "Blue",
        env: object = None,
        *,
        red_agent: Any = "B_lineAgent",
        max_steps: int | None = None,
        **settings: Any,
    ) -> None:
        """Make the game.

        Args:
            agent_name: `Blue`, the only side.
            env: Refused: the game is made here, not by CybORG.
            red_agent: Name or alias of a red agent, or CybORG's class; also as `red_agent_type`.
            max_steps: Steps until `done`; none: never.
            settings: Other settings of `cagepool.make`, such as `edition`.

        Raises:
            TypeError: `env` was given, or a setting is unknown.
            ValueError: the agent is not blue, or a setting has a value that is not allowed.
        """
        if env is not None:
            raise TypeError(
                "env must be left out, since cagepool plays the game itself: write "
                "ChallengeWrapper(red_agent='B_lineAgent') instead of ChallengeWrapper(env=CybORG)"
            )
        if agent_name.lower() != "blue":
            raise ValueError(
                f"agent_name must be Blue, got {agent_name!r}: cagepool.integrations.pettingzoo "
                "plays red"
            )
        if max_steps is not None and max_steps < 1:
            raise ValueError(f"max_steps must be at least 1, or None, got {max_steps}")
        settings = {"red": settings.pop("red_agent_type", red_agent), **settings}
        self.agent_name = agent_name
        self.max_steps = max_steps
        self.step_counter: int | None = None
        self.env = Cage2Env(max_steps=_core.MAX_STEPS, moves=True, **settings)
        self.action_space = self.env.action_space
        self.observation_space = self.env.observation_space
        self._seed: int | None = None

    def seed(self, seed: int) -> None:
        """Set the seed of the next `reset`."""
        self._seed = seed

    def reset(self) -> Observations:
        """Start an episode; returns the observation alone."""
        self.step_counter = 0
        seed, self._seed = self._seed, None
        return self.env.reset(seed=seed)[0]

    def step(self, action: SupportsIndex) -> tuple[Observations, float, bool, dict[str, Any]]:
        """Play an action; returns observation, reward, done and info.

        Raises:
            IndexError: the action is out of range.
            RuntimeError: the first `reset` is missing.
        """
        if self.step_counter is None:
            raise RuntimeError("reset must come before step")
        observation, reward, _, _, info = self.env.step(action)
        self.step_counter += 1
        is_done = self.max_steps is not None and self.step_counter >= self.max_steps
        return observation, reward, is_done, info

    def get_observation(self, agent: str) -> Observations:
        """The current observation of blue."""
        _check_blue(agent)
        return self.env.observation

    def get_action_space(self, agent: str | None = None) -> int:
        """The number of blue's actions."""
        _check_blue(agent or self.agent_name)
        return _core.ACTION_COUNT

    def get_agent_state(self, agent: str) -> dict[str, Any]:
        """The true state as CybORG's dictionary, for the agent `True`.

        Raises:
            ValueError: the agent is another one.
        """
        if agent != "True":
            raise ValueError(f"agent must be 'True', whose state is the true one, got {agent!r}")
        return self.env.true_state_dict()

    def get_last_action(self, agent: str) -> str:
        """The last action of `Blue` or `Red` in words; hosts by name instead of address.

        Raises:
            ValueError: the agent is another one.
        """
        moves = self.env.batch.moves[0]
        if agent == "Red":
            return scenario_names().red_move(0, moves["red_kind"], moves["red_target"])
        _check_blue(agent)
        return action_name(moves["blue_action"])

    def close(self) -> None:
        """Release the game."""
        self.env.close()

    def __getattr__(self, name: str) -> NoReturn:
        """Say what to use instead of methods of CybORG that have no equivalent."""
        instead = f": {_INSTEAD[name]}" if name in _INSTEAD else ""
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{instead}")


class VectorizedCAGE2Envs:
    """Native games with four results per step; a game that is done has begun its next episode.

    `ParallelEnvSharedMemory` is the same class under the name of another document.
    """

    def __init__(self, n_envs: int, red_agent_type: Any = "B_lineAgent", **settings: Any) -> None:
        """Make the games; the settings are those of `cagepool.make_vec`."""
        self.n_envs = n_envs
        self.envs = NativeVectorEnv(
            n_envs, red=red_agent_type, autoreset="same_step", statistics=True, **settings
        )

    def reset(self, seed: int | None = None) -> Observations:
        """Start new episodes; returns the observations alone, (games, 52)."""
        return self.envs.reset(seed=seed)[0]

    def step(
        self, actions: ArrayLike
    ) -> tuple[Observations, Float64s, Bools, list[dict[str, Any]]]:
        """Play one action per game; returns observations, rewards, dones and infos.

        The info of a game that is done has `episode`, with the return `r` and the length `l`, and
        `terminal_observation`, the last observation of the episode.
        """
        observations, rewards, _, dones, infos = self.envs.step(actions)
        by_game: list[dict[str, Any]] = [{} for _ in range(self.n_envs)]
        for game in np.flatnonzero(dones):
            episode = {name: infos["episode"][name][game].item() for name in ("r", "l")}
            by_game[game] = {"episode": episode, "terminal_observation": infos["final_obs"][game]}
        return observations, rewards, dones, by_game

    def close(self) -> None:
        """Release the games."""
        self.envs.close()


ParallelEnvSharedMemory = VectorizedCAGE2Envs


def _check_blue(agent: str) -> None:
    if agent.lower() != "blue":
        raise ValueError(f"agent must be Blue, got {agent!r}")

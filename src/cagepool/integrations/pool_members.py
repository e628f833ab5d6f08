"""Single environments of a pool, queried by index.

A module of its own because worker processes import it, and should not import Stable-Baselines3.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import gymnasium as gym

from cagepool.envs.native import NativeVectorEnv
from cagepool.envs.single import RenderedGame
from cagepool.envs.vector_args import AnyEnv, AnyVectorEnv, EnvFn
from cagepool.types import Bools, Observations, Records

WrapperClass: TypeAlias = type[gym.Wrapper[Any, Any, Any, Any]]

RESET_OPTIONS = "cagepool_options"  # reset option that holds the options of each environment


class Query(NamedTuple):
    """A query to some environments of a pool."""

    envs: frozenset[int]
    verb: str  # has, get, set, call or is_wrapped
    name: Any  # of the attribute or method; the class of a wrapper
    arguments: tuple[Any, ...] = ()
    keywords: dict[str, Any] = {}  # noqa: RUF012 - never changed


class MissingAttribute(NamedTuple):
    """Answer of an environment that lacks the attribute."""

    error: str


class IndexedEnv(gym.Wrapper[Any, Any, Any, Any]):
    """An environment that knows its index in the pool, and answers queries to it."""

    def __init__(self, env_fn: EnvFn, index: int) -> None:
        """Make the environment."""
        super().__init__(env_fn())
        self._index = index

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset with the options of this environment."""
        if options and RESET_OPTIONS in options:
            options = options[RESET_OPTIONS][self._index]
        return self.env.reset(seed=seed, options=options or None)

    def answer(self, query: Query) -> Any:
        """Answer a query; None if it is not to this environment."""
        return _answer(self.env, query) if self._index in query.envs else None


class NativeGame:
    """One game of a native pool, with the interface of `Cage2Env`."""

    spec = None

    def __init__(self, envs: NativeVectorEnv, game: int) -> None:
        """Refer to a game."""
        self._envs = envs
        self._game = game
        self.observation_space = envs.single_observation_space
        self.action_space = envs.single_action_space
        self.render_mode = envs.render_mode
        self.metadata = envs.metadata

    @property
    def unwrapped(self) -> "NativeGame":
        """This game, which has no wrappers."""
        return self

    @property
    def observation(self) -> Observations:
        """Copy of the current observation."""
        observation: Observations = self._envs.batch.observations[self._game].copy()
        return observation

    def action_masks(self, **flags: bool) -> Bools:
        """Actions that can have an effect, (145,)."""
        masks: Bools = self._envs.action_masks(**flags)[self._game]
        return masks

    def true_state(self) -> Records:
        """Copy of the true state, shape ()."""
        return self._envs.batch.true_state[self._game : self._game + 1].copy().reshape(())

    def true_state_dict(self) -> dict[str, Any]:
        """The true state in the form of CybORG's `get_agent_state('True')`."""
        return self._envs.true_state_dict(self._game)

    def save(self) -> bytes:
        """Snapshot of the game."""
        return self._envs.save([self._game])[0]

    def restore(self, blob: bytes) -> None:
        """Replace the game by a snapshot."""
        self._envs.restore([self._game], [blob])

    def reseed(self, seed: int) -> None:
        """Continue the game with a new random stream."""
        self._envs.reseed([self._game], [seed])

    def render(self) -> RenderedGame:
        """Render the game."""
        return self._envs.render_games([self._game])[0]


class PoolMembers:
    """Single environments of a pool, by index: native games or `IndexedEnv`s."""

    def __init__(self, envs: AnyVectorEnv) -> None:
        """Take the pool without its wrappers."""
        self._envs: Any = envs
        self._games: list[NativeGame] | None = None
        if isinstance(envs, NativeVectorEnv):
            self._games = [NativeGame(envs, game) for game in range(envs.num_envs)]

    def query(
        self, envs: Sequence[int], verb: str, name: Any, *arguments: Any, **keywords: Any
    ) -> list[Any]:
        """Query these environments; returns their answers in the same order."""
        query = Query(frozenset(envs), verb, name, arguments, keywords)
        if self._games is not None:
            answers = {env: _answer(self._games[env], query) for env in envs}
        else:
            answers = dict(enumerate(self._envs.call("answer", query)))
        for env in envs:
            if isinstance(answers[env], MissingAttribute):
                raise AttributeError(answers[env].error)
        return [answers[env] for env in envs]


def _answer(env: Any, query: Query) -> Any:
    if query.verb == "is_wrapped":
        return _is_wrapped(env, query.name)
    if query.verb == "set":
        setattr(env, query.name, *query.arguments)
        return None
    try:
        value = _attribute(env, query.name)
    except AttributeError as error:
        return MissingAttribute(str(error))
    if query.verb == "has":
        return True
    return value(*query.arguments, **query.keywords) if query.verb == "call" else value


def _attribute(env: Any, name: str) -> Any:
    return env.get_wrapper_attr(name) if isinstance(env, gym.Env) else getattr(env, name)


def _is_wrapped(env: AnyEnv | NativeGame, wrapper: WrapperClass) -> bool:
    while isinstance(env, gym.Wrapper):
        if isinstance(env, wrapper):
            return True
        env = env.env
    return False

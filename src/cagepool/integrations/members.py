"""Single environments of a pool, asked and told one by one."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import gymnasium as gym
from numpy.typing import NDArray

from cagepool.envs.env_fns import AnyEnv, Maker
from cagepool.envs.make import AnyVectorEnv
from cagepool.envs.native import NativeVectorEnv
from cagepool.types import Bools, Records

Wrapper: TypeAlias = type[gym.Wrapper[Any, Any, Any, Any]]

OPTIONS = "cagepool_options"  # reset option: the options of each environment


class Question(NamedTuple):
    """What is asked of some environments."""

    numbers: frozenset[int]
    verb: str  # has, get, set, call or is_wrapped
    name: Any  # of the attribute or method; the class of a wrapper
    arguments: tuple[Any, ...] = ()
    keywords: dict[str, Any] = {}  # noqa: RUF012 - never changed


class Missing(NamedTuple):
    """The answer of an environment that has no such attribute."""

    sentence: str


class Member(gym.Wrapper[Any, Any, Any, Any]):
    """An environment that knows its number in the pool, and answers if it is meant."""

    def __init__(self, maker: Maker, number: int) -> None:
        """Make the environment."""
        super().__init__(maker())
        self._number = number

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset with this environment's own options."""
        own = options[OPTIONS][self._number] if options and OPTIONS in options else options
        return self.env.reset(seed=seed, options=own or None)

    def answer(self, question: Question) -> Any:
        """What is asked for; nothing if others are asked."""
        return _answer(self.env, question) if self._number in question.numbers else None


class NativeMember:
    """One game of a native pool, with the interface of `Cage2Env`."""

    spec = None

    def __init__(self, envs: NativeVectorEnv, game: int) -> None:
        """Look at a game."""
        self._envs = envs
        self._game = game
        self.observation_space = envs.single_observation_space
        self.action_space = envs.single_action_space
        self.render_mode = envs.render_mode
        self.metadata = envs.metadata

    @property
    def unwrapped(self) -> "NativeMember":
        """This game: nothing wraps it."""
        return self

    @property
    def observation(self) -> NDArray[Any]:
        """The observation as it now stands."""
        observation: NDArray[Any] = self._envs.batch.observations[self._game].copy()
        return observation

    def action_masks(self, **wanted: bool) -> Bools:
        """Actions that make sense, (145,)."""
        masks: Bools = self._envs.action_masks(**wanted)[self._game]
        return masks

    def true_state(self) -> Records:
        """What red holds and what blue believes, shape ()."""
        return self._envs.batch.true_state[self._game : self._game + 1].copy().reshape(())

    def true_state_dict(self) -> dict[str, Any]:
        """The true state in CybORG's form."""
        return self._envs.true_state_dict(self._game)

    def save(self) -> bytes:
        """The game as bytes."""
        return self._envs.save([self._game])[0]

    def restore(self, blob: bytes) -> None:
        """Put a saved game in the place of this one."""
        self._envs.restore([self._game], [blob])

    def reseed(self, seed: int) -> None:
        """Let the game draw from a new random stream from here on."""
        self._envs.reseed([self._game], [seed])

    def render(self) -> str:
        """A picture of the game."""
        return self._envs.render()[self._game]


class Members:
    """All environments of a pool: native games, or ones that were made as `Member`."""

    def __init__(self, envs: AnyVectorEnv) -> None:
        """Take the pool as it was made, without wrappers."""
        self._envs: Any = envs
        self._native: list[NativeMember] | None = None
        if isinstance(envs, NativeVectorEnv):
            self._native = [NativeMember(envs, game) for game in range(envs.num_envs)]

    def ask(
        self, numbers: Sequence[int], verb: str, name: Any, *arguments: Any, **keywords: Any
    ) -> list[Any]:
        """The answers of those with these numbers, in their order.

        Raises:
            AttributeError: one has no such attribute.
        """
        question = Question(frozenset(numbers), verb, name, arguments, keywords)
        if self._native is not None:
            given = {number: _answer(self._native[number], question) for number in numbers}
        else:
            given = dict(enumerate(self._envs.call("answer", question)))
        for number in numbers:
            if isinstance(given[number], Missing):
                raise AttributeError(given[number].sentence)
        return [given[number] for number in numbers]


def _answer(env: Any, question: Question) -> Any:
    if question.verb == "is_wrapped":
        return _is_wrapped(env, question.name)
    if question.verb == "set":
        setattr(env, question.name, *question.arguments)
        return None
    try:
        found = _attribute(env, question.name)
    except AttributeError as error:
        return Missing(str(error))
    if question.verb == "has":
        return True
    return found(*question.arguments, **question.keywords) if question.verb == "call" else found


def _attribute(env: Any, name: str) -> Any:
    return env.get_wrapper_attr(name) if isinstance(env, gym.Env) else getattr(env, name)


def _is_wrapped(env: AnyEnv | NativeMember, wrapper: Wrapper) -> bool:
    while isinstance(env, gym.Wrapper):
        if isinstance(env, wrapper):
            return True
        env = env.env
    return False

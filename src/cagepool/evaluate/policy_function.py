"""Policies of a user as defenders: a function or an object that maps observations to actions."""

from collections.abc import Callable
from inspect import Parameter, isclass, signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cagepool import _core
from cagepool.evaluate.defenders import Defender, GameBatch
from cagepool.evaluate.policy import Policy, PolicyDefender
from cagepool.sim.action_masks import ActionMasks
from cagepool.types import Int64s


class FunctionDefender:
    """Plays `policy(observations)` or `policy(observations, action_masks)`.

    Observations are float32, (games, 52), action masks are Booleans, (games, 145): false where a
    decoy can't be placed. The policy returns one action per game, (games,), or one score per game
    and action, (games, 145), of which the greatest is played. A policy with memory also has
    `reset(mask)`: an episode starts in the games of the Boolean mask, (games,), all of them here.
    The number of games is that of the mask and changes between episodes.
    """

    def __init__(self, policy: Callable[..., ArrayLike], name: str) -> None:
        """Play a policy, which is called by this name in error messages."""
        self._policy = policy
        self._name = name
        self._takes_masks = takes_masks(policy)

    def begin(self, batch: GameBatch) -> None:
        """Start an episode in every game."""
        self._masks = ActionMasks(batch.games)
        if reset := getattr(self._policy, "reset", None):
            self._call(reset, np.ones(batch.games, np.bool_))

    def act(self, batch: GameBatch) -> Int64s:
        """The action of the policy in every game.

        Raises:
            RuntimeError: the policy raised an exception.
            ValueError: what the policy returned is neither actions nor scores.
        """
        observations = np.array(batch.observations, np.float32)  # a copy, which the policy may keep
        masks = (self._masks.masks,) if self._takes_masks else ()
        actions = as_actions(
            self._call(self._policy, observations, *masks), batch.games, self._name
        )
        self._masks.update(actions)
        return actions

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:
            # As a ValueError, an error in the policy would look like a wrong command line.
            raise RuntimeError(f"the policy {self._name} raised {type(error).__name__}") from error


def as_defender(found: Any, name: str) -> Defender:
    """The object that a user names as a defender; a class is instantiated first.

    Args:
        found: A policy (see `FunctionDefender`), a `Defender`, or what `cagepool.load` returns.
        name: Its name, for error messages.

    Raises:
        ValueError: it is none of these.
    """
    policy = found() if isclass(found) else found
    if isinstance(policy, Policy):
        return PolicyDefender(policy)
    if hasattr(policy, "begin") and hasattr(policy, "act"):
        defender: Defender = policy
        return defender
    if not callable(policy):
        raise ValueError(
            f"a policy must be a function of observations, {name} is a {type(policy).__name__}"
        )
    return FunctionDefender(policy, name)


def takes_masks(policy: Callable[..., Any]) -> bool:
    """Whether a policy has a second parameter for action masks: required, or of that name."""
    try:
        parameters = [*signature(policy).parameters.values()][1:2]
    except (TypeError, ValueError):  # functions written in C may have no signature
        return False
    return any(
        parameter.name == "action_masks"
        or (
            parameter.default is Parameter.empty
            and parameter.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        )
        for parameter in parameters
    )


def as_actions(output: ArrayLike, games: int, name: str) -> Int64s:
    """Actions, (games,), from what a policy returned: actions, or scores of all actions.

    Raises:
        ValueError: the array has another shape or dtype, or an action is out of range.
    """
    values = np.asarray(output)
    if values.shape == (games, _core.ACTION_COUNT) and values.dtype.kind == "f":
        scores: Int64s = values.argmax(1)
        return scores
    if values.shape != (games,) or values.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must return integers of shape ({games},) or scores of shape "
            f"({games}, {_core.ACTION_COUNT}), got {values.dtype} of shape {values.shape}"
        )
    if values.min() < 0 or values.max() >= _core.ACTION_COUNT:
        raise ValueError(
            f"{name} must return actions from 0 to {_core.ACTION_COUNT - 1}, "
            f"got {values.min()} to {values.max()}"
        )
    return values.astype(np.int64)

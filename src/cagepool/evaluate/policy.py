"""A trained policy, ready to play; needs numpy only."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cagepool import _core, runs
from cagepool.envs.registration import ENVIRONMENT_ID
from cagepool.evaluate.games import Games
from cagepool.sim.features import FeatureConfig, FeatureEncoder
from cagepool.types import Bytes, Float32s, Int64s

Layers: TypeAlias = list[tuple[Float32s, Float32s]]  # weights, (inputs, outputs), and biases

ACTIVATIONS: dict[str, Callable[[Float32s], Float32s]] = {
    "tanh": np.tanh,
    "relu": lambda rows: np.maximum(rows, np.float32(0)),
}
CAGE_ENVS = (ENVIRONMENT_ID, "cyborg")  # those whose observations the inputs are made for
NEVER = np.float32(-1e30)  # logit of what may not be chosen


def load(run: str | Path, which: str = "best") -> "Policy":
    """The policy of a run.

    Args:
        run: The run's folder.
        which: `best`, by the checks on other seeds during training, or `last`.

    Raises:
        ValueError: the folder is not one of a run, or damaged, or has no such policy.
    """
    folder = runs.open_run(run)
    if which not in ("best", "last"):
        raise ValueError(f"which must be best or last, got {which!r}")
    kind = which if folder.updates_of(which) else "last"
    checkpoint = folder.checkpoint(kind)
    try:
        return Policy(checkpoint.arrays, folder.settings)
    except KeyError as error:
        raise ValueError(f"{folder.path} is damaged: it has no {error}") from error
    except TypeError as error:
        raise ValueError(f"{folder.path} is damaged: a setting is not of its type") from error


class Policy:
    """Chooses actions for many games at once, and remembers what it needs of each.

    Call `begin` when all games start, `act` at every step, and `reset` with the games that start
    anew.
    """

    def __init__(self, arrays: runs.Arrays, settings: dict[str, Any]) -> None:
        """Take the actor's weights, `actor.0.weight` and so on, and the settings of the run."""
        self.settings = settings
        self.layers = layers_of(arrays)
        self._activation = ACTIVATIONS[settings["ppo"]["activation"]]
        self._is_cage = settings["env"]["id"] in CAGE_ENVS
        self._played: Int64s | None = None
        self.begin(1)
        self._check_sizes()

    def begin(self, games: int) -> None:
        """Forget everything: an episode starts in this many games."""
        self._played = None
        if not self._is_cage:
            return
        self._inputs = blue_inputs(self.settings, games)
        masked = self._inputs.config.action_masking
        self._rows: Float32s = np.zeros((games, self._inputs.size), np.float32)
        self._masks: Bytes | None = (
            np.zeros((games, self._inputs.n_choices), np.uint8) if masked else None
        )
        self._fresh = np.ones(games, np.bool_)

    def follow(self, numbers: Bytes) -> None:
        """Play each game to the order with that number, if the policy sees orders at all."""
        if self._is_cage:
            self._inputs.history[:, _core.HISTORY_ORDER_OFFSET] = numbers

    def reset(self, ids: ArrayLike) -> None:
        """Forget the past of these games: what `act` sees next is their first observation."""
        if self._is_cage:
            games = np.asarray(ids, np.int64)
            self._inputs.reset(games)
            self._fresh[games] = True

    def act(
        self,
        observations: ArrayLike,
        *,
        greedy: bool = True,
        rng: np.random.Generator | None = None,
    ) -> Int64s:
        """One action a game, from one observation a game.

        Args:
            observations: (games, 52), or one observation without the first axis for one game.
            greedy: Take the likeliest action, or draw one.
            rng: Draws the actions if not greedy.
        """
        seen = np.asarray(observations, np.float32)
        logits = self.logits(seen[None] if seen.ndim == 1 else seen.reshape(len(seen), -1))
        if not greedy:
            noise = rng or np.random.default_rng()
            logits = logits + noise.gumbel(size=logits.shape).astype(np.float32)
        chosen: Int64s = logits.argmax(1)
        if not self._is_cage:
            return chosen
        self._played = self._inputs.action_indices[chosen]
        return self._played

    def logits(self, observations: Float32s) -> Float32s:
        """Logits of the choices, -1e30 where one is masked out; takes note of the observations."""
        if not self._is_cage:
            return self.forward(observations)
        if len(observations) != len(self._rows):
            self.begin(len(observations))
        self._advance(np.ascontiguousarray(observations))
        logits = self.forward(self._rows)
        return logits if self._masks is None else np.where(self._masks, logits, NEVER)

    def _advance(self, observations: Float32s) -> None:
        """Take note of what was played and seen, but where an episode has just begun."""
        if self._played is not None:
            kept = self._inputs.history[self._fresh].copy()
            self._inputs.update(self._played, observations)
            self._inputs.history[self._fresh] = kept
        self._fresh[:] = False
        self._inputs.encode(observations, self._rows, self._masks)

    def _check_sizes(self) -> None:
        sizes = [weights.shape for weights, _ in self.layers]
        fits = all(left[1] == right[0] for left, right in pairwise(sizes))
        if self._is_cage:
            fits &= (sizes[0][0], sizes[-1][1]) == (self._inputs.size, self._inputs.n_choices)
        if not fits:
            raise ValueError(f"a policy does not fit its settings: its layers are {sizes}")

    def forward(self, rows: Float32s) -> Float32s:
        """What the actor makes of rows of inputs."""
        *hidden, (weights, biases) = self.layers
        for layer_weights, layer_biases in hidden:
            rows = self._activation(rows @ layer_weights + layer_biases)
        return rows @ weights + biases


class PolicyDefender:
    """A policy as a defender of many games."""

    def __init__(self, policy: Policy) -> None:
        """Let this policy play, greedily."""
        self._policy = policy

    def begin(self, batch: Games) -> None:
        """Forget the past: an episode starts in every game of the batch."""
        self._policy.begin(batch.games)

    def act(self, batch: Games) -> Int64s:
        """The likeliest action in every game."""
        return self._policy.act(batch.observations)


def blue_inputs(settings: dict[str, Any], games: int) -> FeatureEncoder:
    """The inputs of a policy that was trained with these settings."""
    config = FeatureConfig(**settings["features"])
    inputs = FeatureEncoder(config, games, horizon=settings["env"]["max_steps"])
    order = settings["order"]["order"] if config.order_input else None
    if order is not None:
        inputs.set_order(order)
    return inputs


def layers_of(arrays: runs.Arrays) -> Layers:
    """The actor's layers, in order."""
    numbers = sorted(
        int(name.split(".")[1])
        for name in arrays
        if name.startswith("actor.") and name.endswith(".weight")
    )
    if not numbers:
        raise KeyError("actor")
    return [
        (_transposed(arrays[f"actor.{number}.weight"]), arrays[f"actor.{number}.bias"])
        for number in numbers
    ]


def _transposed(weights: NDArray[Any]) -> Float32s:
    return np.ascontiguousarray(weights.T, np.float32)

"""A trained policy: an MLP plays in NumPy, without PyTorch, also inside CybORG.

Policies with other networks are in evaluate/network_policy.py; evaluate/load.py chooses.
"""

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import Struct, field
from numpy.typing import ArrayLike

from cagepool import _core
from cagepool.envs.registration import ENVIRONMENT_ID
from cagepool.evaluate.defenders import GameBatch
from cagepool.evaluate.trained_networks import TrainedNetworks
from cagepool.scenarios import Layout
from cagepool.sim.belief import BeliefConfig
from cagepool.sim.features import FeatureConfig, FeatureEncoder
from cagepool.sim.host_features import (
    HostFeatureEncoder,
    PlayedNetworks,
    built_in_networks,
    played_networks,
)
from cagepool.sim.names import MIX, OFFICIAL_REDS, red_weights
from cagepool.types import Arrays, Bytes, Float32s, Int64s

Layers: TypeAlias = list[tuple[Float32s, Float32s]]  # weights, (inputs, outputs), and biases

ACTIVATIONS: dict[str, Callable[[Float32s], Float32s]] = {
    "tanh": np.tanh,
    "relu": lambda rows: np.maximum(rows, np.float32(0)),
}
CAGE_ENVS = (ENVIRONMENT_ID, "cyborg")  # environments whose observations the features encode
MASKED_LOGIT = np.float32(-1e30)
MLP = "mlp"
# In a checkpoint with --normalize-observations: moments of the features.
FEATURE_MEAN, FEATURE_DEVIATION = "normalizer.mean", "normalizer.deviation"
MAX_NORMALIZED = np.float32(10)
NEGLIGIBLE_PRIOR = 1e-6


class EnvSettings(Struct, frozen=True):
    """Settings of the group `env` that a policy depends on."""

    id: str = ENVIRONMENT_ID
    max_steps: int = 100
    red_agent: str = MIX
    scenario: str | None = None
    edition: str = "2.1"
    green: bool = False
    reward: str | None = None


class NetworkSettings(Struct, frozen=True):
    """Settings of the group `ppo` that a policy depends on."""

    network: str = MLP
    hidden: tuple[int, ...] = (64, 64)
    critic_hidden: tuple[int, ...] = ()  # none: as `hidden`
    activation: Literal["tanh", "relu"] = "tanh"


class OrderSettings(Struct, frozen=True):
    """Settings of the group `order` that a policy depends on."""

    order: str | None = None
    knowledge: Literal["true", "observed"] = "true"
    definition: Literal["host", "seed"] = "host"


class PolicySettings(Struct, frozen=True):
    """Settings of a training that a policy depends on.

    A setting that the folder of an older version lacks takes its default, as in `TrainConfig`.
    """

    env: EnvSettings = field(default_factory=EnvSettings)
    ppo: NetworkSettings = field(default_factory=NetworkSettings)
    features: FeatureConfig = field(default_factory=FeatureConfig)
    order: OrderSettings = field(default_factory=OrderSettings)

    @classmethod
    def from_dict(cls, settings: Mapping[str, Mapping[str, Any]]) -> "PolicySettings":
        """Settings by group and name; those of other kinds are ignored, except for features.

        Raises:
            ValueError: a setting has the wrong type, or a feature is unknown.
        """
        unknown = settings.get("features", {}).keys() - FeatureConfig.__dataclass_fields__.keys()
        if unknown:
            raise ValueError(f"features must be known ones, got {', '.join(sorted(unknown))}")
        return msgspec.convert(settings, cls)

    @property
    def is_cage(self) -> bool:
        """Whether the environment is CAGE-2."""
        return self.env.id in CAGE_ENVS


class Policy:
    """Chooses actions for many games at once and stores the history of each game.

    Call `begin` when all games start, `act` at every step, and `reset` with the games that start
    again.
    """

    def __init__(self, arrays: Arrays, settings: Mapping[str, Mapping[str, Any]]) -> None:
        """Build a policy from weights.

        Args:
            arrays: Weights of the actor, `actor.0.weight` and so on.
            settings: Settings of the run, by group and name.

        Raises:
            ValueError: a setting has the wrong type, or the weights do not fit the settings.
        """
        self.settings = PolicySettings.from_dict(settings)
        self._is_cage = self.settings.is_cage
        self._last_actions: Int64s | None = None
        self.moments = feature_moments(arrays)
        self.networks = TrainedNetworks.from_arrays(arrays)
        self._load_weights(arrays)
        if self.networks is None:
            self.begin(1)
        self._check_sizes()

    @property
    def layout(self) -> Layout | None:
        """Layout that the games must have; None: that of their scenarios."""
        return None if self.networks is None else self.networks.layout

    def begin(self, games: int, networks: PlayedNetworks | None = None) -> None:
        """Reset all histories: an episode starts in this many games.

        Args:
            games: Number of games.
            networks: Networks that they play; by default the built-in one.

        Raises:
            ValueError: the policy cannot play these networks.
        """
        self._last_actions = None
        if not self._is_cage:
            return
        self._encoder = self._make_encoder(games, networks)
        has_masks = self._encoder.config.action_masking
        self._rows: Float32s = np.zeros((games, self._encoder.size), np.float32)
        self._masks: Bytes | None = (
            np.zeros((games, self._encoder.n_choices), np.uint8) if has_masks else None
        )
        self._is_first_step = np.ones(games, np.bool_)

    def set_orders(self, order_numbers: Bytes) -> None:
        """Set the workflow order of each game, (games,); ignored without the order feature."""
        if self._is_cage and isinstance(self._encoder, FeatureEncoder):
            self._encoder.history[:, _core.HISTORY_ORDER_OFFSET] = order_numbers

    def reset(self, ids: ArrayLike) -> None:
        """Reset the histories of these games; `act` gets their first observations next."""
        if self._is_cage:
            games = np.asarray(ids, np.int64)
            self._encoder.reset(games)
            self._is_first_step[games] = True

    def act(
        self,
        observations: ArrayLike,
        *,
        greedy: bool = True,
        rng: np.random.Generator | None = None,
    ) -> Int64s:
        """Choose one action per game.

        Args:
            observations: (games, 52), or (52,) for one game.
            greedy: Take the most probable action, or sample one.
            rng: Samples the actions if not greedy.
        """
        rows = np.asarray(observations, np.float32)
        logits = self.logits(rows[None] if rows.ndim == 1 else rows.reshape(len(rows), -1))
        if not greedy:
            rng = rng or np.random.default_rng()
            logits = logits + rng.gumbel(size=logits.shape).astype(np.float32)  # Gumbel-max trick
        choices: Int64s = logits.argmax(1)
        if not self._is_cage:
            return choices
        self._last_actions = self._encoder.action_indices[choices]
        return self._last_actions

    def logits(self, observations: Float32s) -> Float32s:
        """Logits of the choices, -1e30 where masked; adds the observations to the histories."""
        if not self._is_cage:
            return self.forward(self._normalized(observations))
        if not hasattr(self, "_rows") or len(observations) != len(self._rows):
            self.begin(len(observations))
        self._advance(np.ascontiguousarray(observations))
        logits = self.forward(self._normalized(self._rows))
        return logits if self._masks is None else np.where(self._masks, logits, MASKED_LOGIT)

    def forward(self, rows: Float32s) -> Float32s:
        """Forward pass of the actor."""
        *hidden, (weights, biases) = self.layers
        for layer_weights, layer_biases in hidden:
            rows = self._activation(rows @ layer_weights + layer_biases)
        return rows @ weights + biases

    def _make_encoder(
        self, games: int, networks: PlayedNetworks | None
    ) -> FeatureEncoder | HostFeatureEncoder:
        if self.networks is None:
            if networks is not None and not networks.is_built_in:
                raise ValueError(
                    "a policy of the built-in network plays no other network, got "
                    f"{networks.scenarios[0].name}; --network entity trains one that does"
                )
            return feature_encoder(self.settings, games)
        if networks is None:
            networks = built_in_networks(games, self.layout)
        if self.layout not in (None, networks.layout):
            raise ValueError(
                f"a policy with network {self.settings.ppo.network} must play the host slots of "
                "its training, got others: evaluate it with --scenario"
            )
        return HostFeatureEncoder(
            self.settings.features,
            networks,
            horizon=self.settings.env.max_steps,
            kinds=self.networks.choice_kinds,
        )

    def _load_weights(self, arrays: Arrays) -> None:
        self.layers = actor_layers(arrays)
        self._activation = ACTIVATIONS[self.settings.ppo.activation]

    def _normalized(self, rows: Float32s) -> Float32s:
        return rows if self.moments is None else normalize_features(rows, *self.moments)

    def _advance(self, observations: Float32s) -> None:
        """Add the last actions and the observations to the histories of games past step one."""
        if self._last_actions is not None:
            is_first = self._is_first_step
            played = np.flatnonzero(~is_first) if is_first.any() else None
            self._encoder.update(self._last_actions, observations, played)
        self._is_first_step[:] = False
        self._encoder.encode(observations, self._rows, self._masks)

    def _check_sizes(self) -> None:
        sizes = [weights.shape for weights, _ in self.layers]
        fits = all(left[1] == right[0] for left, right in pairwise(sizes))
        fits &= all(weights.shape[1:] == biases.shape for weights, biases in self.layers)
        if self._is_cage:
            fits &= (sizes[0][0], sizes[-1][1]) == self._expected_sizes()
        if not fits:
            raise ValueError(f"a policy does not fit its settings: its layers are {sizes}")

    def _expected_sizes(self) -> tuple[int, int]:
        """Inputs and choices by the settings."""
        if self.networks is not None:
            return self.networks.input_size, self.networks.choice_count
        return self._encoder.size, self._encoder.n_choices


class PolicyDefender:
    """A policy as a defender."""

    def __init__(self, policy: Policy) -> None:
        """Play this policy greedily."""
        self.policy = policy

    def begin(self, batch: GameBatch) -> None:
        """Reset all histories: an episode starts in every game of the batch."""
        self.policy.begin(batch.games, played_networks(batch))

    def act(self, batch: GameBatch) -> Int64s:
        """The most probable action in every game."""
        return self.policy.act(batch.observations)


def feature_encoder(settings: PolicySettings, games: int) -> FeatureEncoder:
    """The feature encoder of a policy that was trained with these settings."""
    encoder = FeatureEncoder(
        settings.features,
        games,
        horizon=settings.env.max_steps,
        belief=belief_config(settings.env),
    )
    if settings.features.order_input and settings.order.order is not None:
        encoder.set_order(settings.order.order)
    return encoder


def feature_moments(arrays: Arrays) -> tuple[Float32s, Float32s] | None:
    """Mean and deviation of the features in a checkpoint; None: features are not normalized.

    Raises:
        ValueError: they have another shape, or are not finite.
    """
    if FEATURE_MEAN not in arrays:
        return None
    mean, deviation = (_floats(arrays, n, dimensions=1) for n in (FEATURE_MEAN, FEATURE_DEVIATION))
    return mean, deviation


def normalize_features(rows: Float32s, mean: Float32s, deviation: Float32s) -> Float32s:
    """Features with mean 0 and deviation 1, limited to 10 deviations."""
    normalized: Float32s = (rows - mean) / deviation
    return np.clip(normalized, -MAX_NORMALIZED, MAX_NORMALIZED, out=normalized)


def belief_config(env: EnvSettings) -> BeliefConfig:
    """What a policy assumes about its games: those of its training.

    Official red agents against which it was not trained are hypotheses of a negligible prior, so
    that the belief knows them when they show.
    """
    weights = dict.fromkeys(OFFICIAL_REDS, NEGLIGIBLE_PRIOR) | red_weights(env.red_agent)
    return BeliefConfig(
        reds=tuple(weights),
        weights=tuple(weights.values()),
        edition=env.edition,
        green=env.green,
    )


def actor_layers(arrays: Arrays) -> Layers:
    """The layers of the actor, in order.

    Raises:
        ValueError: there are none, or one is incomplete, of another shape or not finite.
    """
    matches = (re.fullmatch(r"actor\.([0-9]{1,4})\.weight", name) for name in arrays)
    numbers = sorted(int(match[1]) for match in matches if match)
    if not numbers:
        raise ValueError(f"there must be weights of an actor, got {', '.join(arrays) or 'none'}")
    return [
        (
            np.ascontiguousarray(_floats(arrays, f"actor.{number}.weight", dimensions=2).T),
            _floats(arrays, f"actor.{number}.bias", dimensions=1),
        )
        for number in numbers
    ]


def _floats(arrays: Arrays, name: str, *, dimensions: int) -> Float32s:
    """Finite weights of that name, as float32."""
    if name not in arrays:
        raise ValueError(f"there must be weights {name}, got {', '.join(arrays)}")
    if arrays[name].ndim != dimensions:
        raise ValueError(f"{name} must have {dimensions} dimensions, got {arrays[name].ndim}")
    with np.errstate(over="ignore"):
        values = arrays[name].astype(np.float32, copy=False)
    if not np.isfinite(values).all():
        raise ValueError(f"the weights {name} must be finite, they are not")
    return values

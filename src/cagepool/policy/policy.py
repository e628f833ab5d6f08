"""A trained policy: encoder, normalization, network and masks in one object."""

import hashlib
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Literal, Self

import msgspec
import numpy as np
from msgspec import Struct, field
from numpy.typing import ArrayLike

from cagepool._optional import require
from cagepool.envs.single import ENVIRONMENT_ID
from cagepool.policy.defenders import Defender, cage2_games, game_scenarios
from cagepool.policy.native import MASKED_LOGIT, MAX_NORMALIZED, Layers, NativeRuntime, Runtime
from cagepool.scenarios import Layout
from cagepool.sim.belief import BeliefConfig
from cagepool.sim.encoder import (
    HOST_FEATURES,
    SHARED_FEATURES,
    FeatureConfig,
    FeatureEncoder,
    GameScenarios,
    ScenarioGames,
)
from cagepool.sim.names import MIX, OFFICIAL_REDS, red_weights
from cagepool.sim.settings import Definition, Knowledge, SharedSettings
from cagepool.types import Arrays, Bools, Bytes, Float32s, HostBlocks, Int64s

CAGE_ENVS = (ENVIRONMENT_ID, "cyborg")  # environments whose observations the features encode
MLP, ENTITY = "mlp", "entity"
TRAINED_SCENARIOS = "trained.scenarios"  # in a checkpoint: JSON, as bytes
# In a checkpoint with --normalize-observations: moments of the features.
FEATURE_MEAN, FEATURE_DEVIATION = "normalizer.mean", "normalizer.deviation"
NEGLIGIBLE_PRIOR = 1e-6


class EnvSettings(Struct, frozen=True):
    """Settings of the group `env` that a policy depends on."""

    id: str = ENVIRONMENT_ID
    max_steps: int = SharedSettings.max_steps
    red_agent: str = MIX
    scenario: str | None = None
    edition: str = SharedSettings.edition
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
    knowledge: Knowledge = SharedSettings.knowledge
    definition: Definition = SharedSettings.definition


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
        """Settings by group and name; those of other kinds are ignored, except for features."""
        unknown = settings.get("features", {}).keys() - FeatureConfig.__dataclass_fields__.keys()
        if unknown:
            raise ValueError(f"features must be known ones, got {', '.join(sorted(unknown))}")
        return msgspec.convert(settings, cls)

    @property
    def is_cage(self) -> bool:
        """Whether the environment is CAGE-2."""
        return self.env.id in CAGE_ENVS


class TrainedScenarios(Struct, frozen=True):
    """Layout and scenarios of a training whose policy sees its inputs host by host."""

    slots: tuple[str, ...]
    action_kinds: tuple[str, ...]  # of the layout
    plain_kinds: tuple[str, ...]  # of the policy's choices, without a host
    host_kinds: tuple[str, ...]  # of its choices on a host
    by_position: bool  # whether slot i is host i, whatever its name is
    scenarios: int
    hash: str  # of the hashes of all scenarios, in their order
    shared_features: int = SHARED_FEATURES
    host_features: int = HOST_FEATURES

    @classmethod
    def from_encoder(cls, encoder: FeatureEncoder) -> Self:
        """The scenarios that an encoder encodes."""
        games, blocks = encoder.games, encoder.blocks
        assert blocks is not None
        hashes = "\n".join(scenario.hash for scenario in games.scenarios)
        return cls(
            slots=games.layout.slots,
            action_kinds=games.layout.kinds,
            plain_kinds=blocks.plain_kinds,
            host_kinds=blocks.host_kinds,
            by_position=games.layout.by_position,
            scenarios=len(games.scenarios),
            hash=hashlib.sha256(hashes.encode()).hexdigest(),
        )

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self | None:
        """The scenarios that a checkpoint names; None: CAGE-2 alone, and inputs made for it."""
        if TRAINED_SCENARIOS not in arrays:
            return None
        try:
            known = msgspec.json.decode(arrays[TRAINED_SCENARIOS].tobytes(), type=cls)
        except msgspec.MsgspecError as error:
            raise ValueError(f"{TRAINED_SCENARIOS} must describe scenarios: {error}") from error
        sizes = known.shared_features, known.host_features
        if sizes != (SHARED_FEATURES, HOST_FEATURES):
            raise ValueError(
                f"a policy must have {SHARED_FEATURES} shared inputs and {HOST_FEATURES} per host, "
                f"as this version of cagepool makes them, got {sizes[0]} and {sizes[1]}"
            )
        return known

    def to_arrays(self) -> Arrays:
        """The array that `from_arrays` reads, by its name in a checkpoint."""
        return {TRAINED_SCENARIOS: np.frombuffer(msgspec.json.encode(self), np.uint8).copy()}

    @property
    def layout(self) -> Layout:
        """Layout of the training."""
        return Layout(self.slots, self.action_kinds, self.by_position)

    @property
    def blocks(self) -> HostBlocks:
        """How the policy's inputs and logits are made of hosts."""
        return HostBlocks(
            self.shared_features, self.host_features, self.plain_kinds, self.host_kinds
        )

    @property
    def sizes(self) -> tuple[int, int]:
        """Inputs and choices of a policy that plays the layout of its training."""
        slots = len(self.slots)
        inputs = self.shared_features + slots * self.host_features
        return inputs, len(self.plain_kinds) + slots * len(self.host_kinds)


class EncodedDefender(Defender):
    """Encodes observations and the history of each game; a subclass chooses by the features."""

    _games: GameScenarios | None = None  # none: `begin` was not called
    _encoder: FeatureEncoder

    def begin(self, games: int | ScenarioGames) -> None:
        """Start an episode in the games of a batch, or in this many games of CAGE-2."""
        known = self._playable_games(games)
        self._encoder = self._make_encoder(known)
        self._games = known
        has_masks = self._encoder.config.action_masking
        shape = known.games, self._encoder.n_choices
        self._rows: Float32s = np.zeros((known.games, self._encoder.size), np.float32)
        self._masks: Bytes | None = np.zeros(shape, np.uint8) if has_masks else None
        self._last_actions: Int64s = np.zeros(known.games, np.int64)
        self._is_first_step: Bools = np.ones(known.games, np.bool_)

    def act(self, observations: ArrayLike) -> Int64s:
        """Choose one action per game, by (games, values), or (values,) for one game."""
        self._advance(_as_rows(observations))
        return self._play(self._choose())

    def record(self, actions: ArrayLike) -> None:
        """Replace the actions that `act` returned last by those that were played, (games,)."""
        played = np.array(actions, np.int64)
        if self._games is not None and played.shape != (self._games.games,):
            raise ValueError(f"there must be {self._games.games} actions, got {played.shape}")
        self._last_actions = played

    def reset(self, ids: ArrayLike) -> None:
        """Start an episode in these games; `act` gets their first observations next."""
        if self._games is not None:
            games = np.asarray(ids, np.int64)
            self._encoder.reset(games)
            self._is_first_step[games] = True

    def state(self) -> Arrays:
        """History of all games, for `restore`."""
        if self._games is None:
            return {}
        own = {"last_actions": self._last_actions, "is_first_step": self._is_first_step}
        return self._encoder.state() | {name: array.copy() for name, array in own.items()}

    def restore(self, state: Arrays) -> None:
        """Continue from what `state` returned, in the same number of games."""
        if self._games is None:
            return
        games = self._games.games
        if len(state.get("last_actions", ())) != games:
            raise ValueError(f"a saved state must be of a policy in {games} games")
        self._encoder.restore(state)
        self._last_actions = state["last_actions"].copy()
        self._is_first_step = state["is_first_step"].copy()

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the encoder, which is made anew, and its memory."""
        own = {name: value for name, value in vars(self).items() if name != "_encoder"}
        return own | {"_saved": self.state()}

    def __setstate__(self, own: dict[str, Any]) -> None:
        """Make the encoder anew."""
        saved = own.pop("_saved")
        vars(self).update(own)
        if self._games is not None:
            self.begin(self._games)
            self.restore(saved)

    def _playable_games(self, games: int | ScenarioGames) -> GameScenarios:
        """The scenarios of games that the policy can play."""
        cage2_games(games, self.name)
        return game_scenarios(games)

    def _make_encoder(self, games: GameScenarios) -> FeatureEncoder:
        raise NotImplementedError

    def _choose(self) -> Int64s:
        """One choice per game by `_rows` and `_masks`."""
        raise NotImplementedError

    def _play(self, choices: Int64s) -> Int64s:
        self._last_actions = self._encoder.action_indices[choices]
        return self._last_actions.copy()

    def _advance(self, observations: Float32s) -> None:
        """Add the last actions and the observations to the histories of games past step one."""
        if self._games is None or len(observations) != self._games.games:
            self.begin(len(observations))
        is_first = self._is_first_step
        if not is_first.all():
            played = np.flatnonzero(~is_first) if is_first.any() else None
            self._encoder.update(self._last_actions, observations, played)
        self._is_first_step[:] = False
        self._encoder.encode(observations, self._rows, self._masks)


class Policy(EncodedDefender):
    """A trained policy: encoder, normalization, network and masks.

    An MLP plays by the core (`policy.native`), another network by PyTorch (`policy.networks`).
    """

    def __init__(
        self, arrays: Arrays, settings: Mapping[str, Mapping[str, Any]], *, threads: int = 1
    ) -> None:
        """Take the arrays of a checkpoint and the settings of its run, by group and name.

        The network uses at most `threads` threads while it acts; fewer give the same actions.

        Raises:
            ValueError: a setting has the wrong type, or the weights do not fit the settings.
            ImportError: the network needs PyTorch, which is not installed.
        """
        self.settings = PolicySettings.from_dict(settings)
        env, order = self.settings.env, self.settings.order
        self.trained_on, self.scenario, self.reward = env.edition, env.scenario, env.reward
        self.order, self.knowledge, self.definition = order.order, order.knowledge, order.definition
        self.moments = feature_moments(arrays)
        self.scenarios = TrainedScenarios.from_arrays(arrays)
        if self.scenarios is not None and self.settings.ppo.network != ENTITY:
            self.layout = self.scenarios.layout
        self.runtime = self._make_runtime(arrays, threads)
        if self.settings.is_cage and self.runtime.sizes != self._expected_sizes():
            raise ValueError(
                f"a policy does not fit its settings: its sizes are {self.runtime.sizes}"
            )

    def begin(self, games: int | ScenarioGames) -> None:
        """Start an episode in the games of a batch, or in this many games of CAGE-2."""
        if self.settings.is_cage:
            super().begin(games)
        elif not isinstance(games, int):
            raise ValueError(
                f"a policy must be one for CAGE-2, that of {self.run or self.name} is for another "
                "game"
            )
        self.runtime.begin(games if isinstance(games, int) else games.games)

    def set_orders(self, order_numbers: Bytes) -> None:
        """Set the workflow order of each game, (games,); ignored without the order feature."""
        self._encoder.set_order(order_numbers)

    def act(
        self,
        observations: ArrayLike,
        *,
        greedy: bool = True,
        rng: np.random.Generator | None = None,
    ) -> Int64s:
        """Choose one action per game: the most probable one if greedy, else one that `rng` draws.

        Observations are (games, values), or (values,) for one game.
        """
        logits = self.logits(_as_rows(observations))
        if not greedy:
            rng = rng or np.random.default_rng()
            logits = logits + rng.gumbel(size=logits.shape).astype(np.float32)  # Gumbel-max trick
        choices: Int64s = logits.argmax(1)
        return self._play(choices) if self.settings.is_cage else choices

    def logits(self, observations: Float32s) -> Float32s:
        """Logits of the choices, -1e30 where masked; adds the observations to the histories."""
        if not self.settings.is_cage:
            return self.runtime.logits(self._normalized(observations), None)
        self._advance(np.ascontiguousarray(observations))
        logits = self.runtime.logits(self._normalized(self._rows), self._masks)
        return (
            logits
            if self._masks is None
            else np.where(self._masks, logits, np.float32(MASKED_LOGIT))
        )

    def reset(self, ids: ArrayLike) -> None:
        """Start an episode in these games; `act` gets their first observations next."""
        super().reset(ids)
        self.runtime.reset(np.asarray(ids, np.int64))

    def state(self) -> Arrays:
        """History of all games, for `restore`."""
        return super().state() | self.runtime.state()

    def restore(self, state: Arrays) -> None:
        """Continue from what `state` returned, in the same number of games."""
        super().restore(state)
        self.runtime.restore(state)

    def _playable_games(self, games: int | ScenarioGames) -> GameScenarios:
        if self.scenarios is None:
            return super()._playable_games(games)
        if isinstance(games, int):
            return GameScenarios.of_cage2(games, self.layout)
        if self.layout not in (None, games.layout):
            raise ValueError(
                f"a policy with network {self.settings.ppo.network} must play the host slots of "
                "its training, got others: evaluate it with --scenario"
            )
        return game_scenarios(games)

    def _make_encoder(self, games: GameScenarios) -> FeatureEncoder:
        if self.scenarios is None:
            return feature_encoder(self.settings, games.games)
        return FeatureEncoder(
            self.settings.features,
            games,
            horizon=self.settings.env.max_steps,
            blocks=self.scenarios.blocks.kinds,
        )

    def _make_runtime(self, arrays: Arrays, threads: int) -> Runtime:
        settings = self.settings.ppo
        if settings.network == MLP:
            return NativeRuntime(actor_layers(arrays), settings.activation, threads)
        with require(f"a policy with network {settings.network}", "train", "torch"):
            from cagepool.policy.networks import TorchRuntime  # noqa: PLC0415 - slow import

            return TorchRuntime(
                settings.network,
                arrays,
                threads,
                hidden=settings.hidden,
                critic_hidden=settings.critic_hidden or settings.hidden,
                activation=settings.activation,
                hosts=None if self.scenarios is None else self.scenarios.blocks,
            )

    def _normalized(self, rows: Float32s) -> Float32s:
        return rows if self.moments is None else normalize_features(rows, *self.moments)

    def _expected_sizes(self) -> tuple[int, int]:
        """Inputs and choices by the settings."""
        if self.scenarios is not None:
            return self.scenarios.sizes
        encoder = feature_encoder(self.settings, 1)
        return encoder.size, encoder.n_choices


def _as_rows(observations: ArrayLike) -> Float32s:
    """Observations, (games, values), from those of games or of one game."""
    rows = np.asarray(observations, np.float32)
    return rows[None] if rows.ndim == 1 else np.ascontiguousarray(rows.reshape(len(rows), -1))


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
    """Mean and deviation of the features in a checkpoint; None: features are not normalized."""
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
    """The layers of the actor, in order."""
    matches = (re.fullmatch(r"actor\.([0-9]{1,4})\.weight", name) for name in arrays)
    numbers = sorted(int(match[1]) for match in matches if match)
    if not numbers:
        raise ValueError(f"there must be weights of an actor, got {', '.join(arrays) or 'none'}")
    layers = [
        (
            _floats(arrays, f"actor.{number}.weight", dimensions=2),
            _floats(arrays, f"actor.{number}.bias", dimensions=1),
        )
        for number in numbers
    ]
    fits = all(len(weights) == len(biases) for weights, biases in layers)
    if not fits or any(len(one) != other.shape[1] for (_, one), (other, _) in pairwise(layers)):
        shapes = [weights.shape for weights, _ in layers]
        raise ValueError(f"the layers of an actor must fit each other, got {shapes}")
    return layers


def _floats(arrays: Arrays, name: str, *, dimensions: int) -> Float32s:
    """Finite weights of that name, as float32."""
    if name not in arrays:
        raise ValueError(f"there must be weights {name}, got {', '.join(arrays)}")
    if arrays[name].ndim != dimensions:
        raise ValueError(f"{name} must have {dimensions} dimensions, got {arrays[name].ndim}")
    with np.errstate(over="ignore"):
        values = arrays[name].astype(np.float32, copy=False)
    if not np.isfinite(values).all():
        raise ValueError(f"weights {name} contain NaN or infinity")
    return values

"""The rollout buffer, and what a sampler needs to fill it: an encoder and an actor."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from cagepool import _core
from cagepool.types import Arrays, Bools, Bytes, Float32s, HostBlocks, Int64s

State: TypeAlias = dict[str, Any]  # JSON values of a checkpoint, beside its arrays


@dataclass(frozen=True)
class RolloutShape:
    """Sizes of a rollout buffer."""

    steps: int
    n_envs: int
    features: int
    actions: int
    masked: bool  # whether it holds action masks
    critic_features: int = 0  # 0: the critic sees `features`
    hosts: HostBlocks | None = None  # of the features; None: they are not made of hosts


class Rollout:
    """Rollout buffer: row t holds the features before step t, the action, and its results.

    `features`, `critic_features` and `action_masks` have one more row, for the states after the
    last step.
    """

    def __init__(self, shape: RolloutShape) -> None:
        """Allocate the arrays."""
        cells = (shape.steps, shape.n_envs)
        states = (shape.steps + 1, shape.n_envs)
        self.shape = shape
        self.features: Float32s = np.zeros((*states, shape.features), np.float32)
        self.critic_features: Float32s | None = (  # None: the critic sees `features`
            np.zeros((*states, shape.critic_features), np.float32)
            if shape.critic_features
            else None
        )
        self.action_masks: Bytes | None = (
            np.ones((*states, shape.actions), np.uint8) if shape.masked else None
        )
        self.actions: Int64s = np.zeros(cells, np.int64)  # indices into the action set
        self.log_probs: Float32s = np.zeros(cells, np.float32)
        self.rewards: Float32s = np.zeros(cells, np.float32)
        self.dones: Bools = np.zeros(cells, np.bool_)  # the episode ended with this step
        self.counted: Bools = np.ones(cells, np.bool_)  # the step belongs to the run's episodes
        self.truncations: list[Truncation] = []
        # Of a recurrent policy before the first step, (environments, state size).
        self.initial_state: Float32s | None = None
        self.steps = 0  # rows that are filled

    def restart(self, last: "Rollout | None" = None) -> None:
        """Empty the buffer; its first states are the last ones of `last`, or of itself."""
        source = last or self
        self.features[0] = source.features[source.steps]
        if self.critic_features is not None and source.critic_features is not None:
            self.critic_features[0] = source.critic_features[source.steps]
        if self.action_masks is not None and source.action_masks is not None:
            self.action_masks[0] = source.action_masks[source.steps]
        self.truncations.clear()
        self.steps = 0


@dataclass(frozen=True)
class Truncation:
    """Last states of the episodes that hit their time limit in one step."""

    step: int
    env_ids: Int64s
    features: Float32s  # (env_ids, features)
    critic_features: Float32s | None = None  # (env_ids, critic features); None: `features`


@dataclass
class FinishedEpisodes:
    """Episodes that ended during a rollout."""

    returns: list[float] = field(default_factory=list)  # of the official reward
    shaped_returns: list[float] = field(default_factory=list)  # only with a reward function
    lengths: list[int] = field(default_factory=list)
    counters: Int64s = field(  # of compliance, (episode, COUNTER_COUNT); no rows without an order
        default_factory=lambda: np.zeros((0, _core.COUNTER_COUNT), np.int64)
    )


class Encoder(Protocol):
    """Turns observations into policy features, and policy actions into environment actions."""

    size: int
    n_choices: int
    action_indices: Int64s  # environment action per policy action

    def reset(self, ids: Int64s, /) -> None:
        """Clear the history of these environments."""

    def update(self, actions: Int64s, observations: Float32s, /) -> None:
        """Add the actions and the observations that followed to the histories."""

    def encode(self, observations: Float32s, features: Float32s, masks: Bytes | None, /) -> None:
        """Write features and action masks."""


class CorePolicy(NamedTuple):
    """Network and parameters of an actor that the core can play with."""

    actor: _core.MlpActor
    parameters: Float32s


class Actor(Protocol):
    """Policy that samples the actions of a rollout, with its own copy of a learner's weights."""

    @property
    def core_policy(self) -> CorePolicy | None:
        """What the core needs to play rollouts; None: the core cannot play the policy."""
        return None

    @property
    def state(self) -> Float32s | None:
        """Recurrent state, (environments, state size); None if the policy has none."""
        return None

    def load_state(self, _state: Float32s, /) -> None:
        """Set the recurrent state."""
        return

    def weights(self) -> Arrays:
        """Weights by name, as `load_weights` takes them."""

    def load_weights(self, weights: Arrays, /) -> None:
        """Copy the weights of a learner."""

    def logits(self, features: Float32s, masks: Bytes | None, /) -> Float32s:
        """Logits of the actions before masking; the next call may overwrite them."""

    def sample(
        self,
        features: Float32s,
        masks: Bytes | None,
        uniforms: Float32s,
        actions: Int64s,
        log_probs: Float32s,
        /,
    ) -> None:
        """Write one action per environment and its log probability; advances the state.

        Args:
            features: (environments, features).
            masks: Allowed actions, (environments, actions).
            uniforms: Random numbers in [0, 1), (environments,).
            actions: Is filled with the actions.
            log_probs: Is filled with their log probabilities.
        """

    def reset(self, _env_ids: Int64s, /) -> None:
        """Clear the recurrent state of environments whose episode ended."""
        return

    def close(self) -> None:
        """Stop the threads."""
        return

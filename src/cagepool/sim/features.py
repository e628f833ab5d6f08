"""Policy features and masks from the history of an episode, and subsets of blue's actions."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from cagepool import _core
from cagepool.sim.action_masks import action_masks
from cagepool.sim.belief import BELIEF_FEATURES, BeliefConfig, BeliefFilter
from cagepool.sim.names import ACTIONS, HOSTS
from cagepool.sim.orders import order_number
from cagepool.types import Arrays, Bytes, Float32s, Int64s

ActionSet: TypeAlias = Literal["all", "possible", "reduced", "core", "lean"]
ACTION_SETS = get_args(ActionSet)
CriticInputs: TypeAlias = Literal["same", "true"]


def action_set(name: str) -> Int64s:
    """Indices of the actions of a set.

    `all` has all 145 actions. `possible` leaves out decoys that never fit their host. `reduced`
    also leaves out Monitor, which the game plays at the end of every step, and all actions on
    Defender, which red never reaches, and on User0, from which red cannot be removed. `core` also
    leaves out the operational hosts, from which no official red agent gains anything. `lean` has
    33: Sleep; on User1-4, Enterprise0-2 and Op_Server0 Restore and the decoys that fit, without
    Vsftpd, which opens the port of Apache; and on the first seven of these hosts Remove.

    Raises:
        ValueError: no set has that name.
    """
    if name not in ACTION_SETS:
        raise ValueError(f"actions must be one of {', '.join(ACTION_SETS)}; got {name!r}")
    if name == "all":
        return np.arange(_core.ACTION_COUNT)
    no_decoys = np.zeros((1, _core.HOST_COUNT), np.uint16)
    is_full = name == "possible"
    allowed = action_masks(no_decoys, monitor=is_full, defender=is_full, user0=is_full)[0]
    if name == "core":
        op_hosts = tuple(host for host in HOSTS if host.startswith("Op_Host"))
        allowed &= [not action.endswith(op_hosts) for action in ACTIONS]
    if name == "lean":
        allowed &= [_is_lean(action) for action in ACTIONS]
    return np.flatnonzero(allowed)


def _is_lean(action: str) -> bool:
    kind, _, host = action.partition(" ")
    if host.startswith("Op_"):
        return host == "Op_Server0" and kind not in ("Analyse", "Remove", "DecoyVsftpd")
    return kind not in ("Analyse", "DecoyVsftpd")


def parse_biases(text: str) -> dict[str, float]:
    """Biases by kind of action, from text such as `Restore=-2,Decoy=1`.

    Raises:
        ValueError: a kind is unknown, or a bias is not a finite number.
    """
    kinds = [kind.name.capitalize() for kind in _core.BlueKind]
    biases = {}
    for part in text.split(","):
        name, _, number = part.partition("=")
        try:
            bias = float(number)
        except ValueError:
            bias = float("nan")
        if name.strip() not in kinds or not np.isfinite(bias):
            raise ValueError(
                f"start_bias must be numbers by kind of action ({', '.join(kinds)}), such as "
                f"Restore=-2, got {text!r}"
            )
        biases[name.strip()] = bias
    return biases


@dataclass(frozen=True, kw_only=True)
class FeatureConfig:
    """Policy features beside the observation, and the action set."""

    observation: bool = True
    """Feature: the 52 values that blue observes. Off: the policy sees only the other features."""
    scan_memory: bool = True
    """Feature: hosts with activity or an exploit so far, and the host where it was seen last.
    Off: the policy sees only the scans in the present observation."""
    decoys_placed: bool = True
    """Feature: decoys that blue has placed and not removed by Restore.
    Off: the policy does not know its decoys."""
    last_action: bool = True
    """Feature: kind and host of blue's last action. Off: the policy does not know it."""
    time_left: bool = True
    """Feature: share of max_steps that is left. Off: the policy does not know the time."""
    clock: bool = False
    """Feature: time passed, nearness of the end on three time scales, official lengths that have
    passed, and the first ten steps, 16 values. Off: only time_left tells the time."""
    hosts_restored: bool = False
    """Feature: hosts that blue has restored in this episode.
    Off: the policy does not know them."""
    belief: bool = False
    """Feature: the exact belief about red, by Bayes' rule (docs/belief.md): sessions, knowledge
    and next action. Off: the policy has to infer them."""
    order_input: bool = False
    """Feature: the workflow order, 5 x 5 values. Off: the policy does not see the order."""
    action_masking: bool = True
    """Mask decoys that cannot be placed now.
    Off: the policy can choose them, and they fail."""
    actions: ActionSet = "reduced"
    """Action set. all: 145 actions. possible: without decoys that never fit their host.
    reduced: also without Monitor, Defender and User0. core: also without operational hosts.
    lean: the 33 that good defenders use, without Analyse (docs/training.md)."""
    critic_inputs: CriticInputs = "same"
    """Inputs of the critic, which only training needs. same: those of the actor.
    true: also the true state of the game, which the actor never sees."""


class FeatureEncoder:
    """Encodes observations and the history of each episode as policy features and masks.

    `history`, one row of bytes per game, and the belief are the whole state of the encoder.
    """

    def __init__(
        self,
        config: FeatureConfig,
        games: int,
        *,
        horizon: int,
        belief: BeliefConfig | None = None,
    ) -> None:
        """Start an episode in every game.

        Args:
            config: Features and action set.
            games: Number of games.
            horizon: Episode length behind `time_left` and `clock`.
            belief: What blue assumes about the game, if the belief is a feature.
        """
        self.config = config
        self.action_indices = action_set(config.actions)  # action of each choice of the policy
        self.n_choices = len(self.action_indices)
        self.history: Bytes = np.zeros((games, _core.HISTORY_BYTES), np.uint8)
        self.core = _core.FeatureEncoder(
            choices=self.action_indices.tolist(),
            observation=config.observation,
            scans=config.scan_memory,
            decoys=config.decoys_placed,
            last_action=config.last_action,
            time=config.time_left,
            order=config.order_input,
            clock=config.clock,
            restored=config.hosts_restored,
            horizon=horizon,
            appended=BELIEF_FEATURES if config.belief else 0,
        )
        self.size = self.core.size
        self.belief = BeliefFilter(games, belief) if config.belief else None

    def reset(self, ids: Int64s | slice = slice(None)) -> None:
        """Start a new episode in these games; their orders stay."""
        order_numbers = self.history[ids, _core.HISTORY_ORDER_OFFSET].copy()
        self.history[ids] = 0
        self.history[ids, _core.HISTORY_ORDER_OFFSET] = order_numbers
        if self.belief is not None:
            self.belief.reset(np.arange(len(self.history))[ids])

    def set_order(self, order: str, ids: Int64s | slice = slice(None)) -> None:
        """Set the workflow order of these games."""
        self.history[ids, _core.HISTORY_ORDER_OFFSET] = order_number(order)

    def update(self, actions: Int64s, observations: Float32s, ids: Int64s | None = None) -> None:
        """Add a step to the history of all games, or of those of `ids`.

        Args:
            actions: Blue's actions, one per game of the encoder.
            observations: The observations that followed, likewise.
            ids: Games that have played the step.
        """
        if ids is None:
            self.core.update(actions, observations, self.history)
        else:
            actions, observations = actions[ids], observations[ids]
            histories = self.history[ids]
            self.core.update(actions, observations, histories)
            self.history[ids] = histories
        if self.belief is not None:
            self.belief.update(actions, observations, ids)

    def encode(self, observations: Float32s, features: Float32s, masks: Bytes | None) -> None:
        """Write the current features, (games, size), and masks, (games, n_choices)."""
        self.core.encode(observations, self.history, features, masks)
        if self.belief is not None:
            self.belief.write_features(features, column=self.size - BELIEF_FEATURES)

    def state(self) -> Arrays:
        """History and belief of all games, for `restore`."""
        belief = {} if self.belief is None else self.belief.state()
        return {"memories": self.history.copy(), **belief}

    def restore(self, arrays: Arrays) -> None:
        """Continue from what `state` returned; older versions had shorter histories.

        Raises:
            ValueError: the arrays are missing, damaged or of other settings.
        """
        self.history[:] = 0
        self.history[:, : arrays["memories"].shape[1]] = arrays["memories"]
        if self.belief is not None:
            self.belief.restore(arrays)

"""Policy inputs and masks of choices, made of what blue saw and did in an episode."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from cagepool import _core
from cagepool.sim import orders
from cagepool.sim.action_masks import action_masks
from cagepool.sim.names import ACTIONS, HOSTS
from cagepool.types import Bytes, Float32s, Int64s

ActionSet: TypeAlias = Literal["all", "possible", "reduced", "core"]
ACTION_SETS = get_args(ActionSet)


def action_set(name: str) -> Int64s:
    """Official numbers of the actions of a set.

    `all` has all 145; `possible` leaves out decoys that their host can never take; `reduced` also
    Monitor, which happens anyway at the end of every step, and what is done on Defender, where red
    never gets, or on User0, where red can't be got rid of; `core` also the operational hosts,
    which no red agent of the challenge attacks for gain.

    Raises:
        ValueError: no set has that name.
    """
    if name not in ACTION_SETS:
        raise ValueError(f"actions must be one of {', '.join(ACTION_SETS)}; got {name!r}")
    if name == "all":
        return np.arange(_core.ACTION_COUNT)
    clean = np.zeros((1, _core.HOST_COUNT), np.uint16)
    everywhere = name == "possible"
    allowed = action_masks(clean, monitor=everywhere, defender=everywhere, user0=everywhere)[0]
    if name == "core":
        op_hosts = tuple(host for host in HOSTS if host.startswith("Op_Host"))
        allowed &= [not action.endswith(op_hosts) for action in ACTIONS]
    return np.flatnonzero(allowed)


@dataclass(frozen=True, kw_only=True)
class FeatureConfig:
    """Policy features beside the observation, and the action set."""

    scan_memory: bool = True
    """Feature: hosts with activity or an exploit so far, and the host where it was seen last.
    Off: the policy sees only the scans in the present observation."""
    decoys_placed: bool = True
    """Feature: decoys that blue has placed and not removed by Restore. Off: the policy does not
    know its decoys."""
    last_action: bool = True
    """Feature: kind and host of blue's last action. Off: the policy does not know it."""
    time_left: bool = True
    """Feature: share of max_steps that is left. Off: the policy does not know the time."""
    order_input: bool = False
    """Feature: the workflow order, 5 x 5 values. Off: the policy does not see the order."""
    action_masking: bool = True
    """Mask decoys that cannot be placed now. Off: the policy can choose them, and they
    fail."""
    actions: ActionSet = "reduced"
    """Action set. all: 145 actions. possible: without decoys that never fit their host. reduced:
    also without Monitor, Defender and User0. core: also without the operational hosts."""


class BlueInputs:
    """Inputs and masks of N games, which follow from the observations and from what was played.

    `memories` is all the state there is: a row of bytes a game.
    """

    def __init__(self, config: FeatureConfig, games: int, *, horizon: int) -> None:
        """Begin an episode in every game; `horizon` is what `time_left` refers to."""
        self.config = config
        self.numbers = action_set(config.actions)
        self.choices = len(self.numbers)
        self.memories: Bytes = np.zeros((games, _core.HISTORY_BYTES), np.uint8)
        self._core = _core.FeatureEncoder(
            choices=self.numbers.tolist(),
            scans=config.scan_memory,
            decoys=config.decoys_placed,
            last_action=config.last_action,
            time=config.time_left,
            order=config.order_input,
            horizon=horizon,
        )
        self.size = self._core.size

    def begin(self, ids: Int64s | slice = slice(None)) -> None:
        """Forget the past of these games, but not their orders: an episode starts."""
        kept = self.memories[ids, _core.HISTORY_ORDER_OFFSET].copy()
        self.memories[ids] = 0
        self.memories[ids, _core.HISTORY_ORDER_OFFSET] = kept

    def follow(self, order: str, ids: Int64s | slice = slice(None)) -> None:
        """Let these games be played to an order."""
        self.memories[ids, _core.HISTORY_ORDER_OFFSET] = orders.number(order)

    def advance(self, played: Int64s, observations: Float32s) -> None:
        """Take note of the actions that were played, and of what blue saw next."""
        self._core.update(played, observations, self.memories)

    def write(self, observations: Float32s, inputs: Float32s, masks: Bytes | None) -> None:
        """Write the inputs, (games, size), and the masks, (games, choices), as they now stand."""
        self._core.encode(observations, self.memories, inputs, masks)

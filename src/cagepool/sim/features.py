"""Policy inputs and masks of choices, made of what blue saw and did in an episode."""

from dataclasses import dataclass

import numpy as np

from cagepool import _core
from cagepool.sim import orders
from cagepool.sim.action_masks import action_masks
from cagepool.sim.names import ACTIONS, HOSTS
from cagepool.types import Bytes, Float32s, Int64s

ACTION_SETS = ("all", "possible", "reduced", "core")


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
class InputConfig:
    """What a policy gets to see and to choose from."""

    scan_memory: bool = True
    """Hosts on which activity, or an exploit, was ever seen, and where it was seen last."""
    decoys_placed: bool = True
    """The decoys that blue has placed and not restored away."""
    last_action: bool = True
    """Kind and host of blue's last action."""
    time_left: bool = True
    """Share of `max_steps` that is left."""
    order_input: bool = False
    """The workflow order, 5 x 5 values."""
    action_masking: bool = True
    """Keep the policy from placing decoys where they can't be placed now."""
    actions: str = "reduced"
    """The actions it may choose from: all, possible, reduced or core."""


class BlueInputs:
    """Inputs and masks of N games, which follow from the observations and from what was played.

    `memories` is all the state there is: a row of bytes a game.
    """

    def __init__(self, config: InputConfig, games: int, *, horizon: int) -> None:
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

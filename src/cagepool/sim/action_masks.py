"""Action masks: which actions can work, from what blue itself can know."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from cagepool import _core
from cagepool.sim.names import action_index, action_name, host_index
from cagepool.types import Bools, Int64s

_KIND, _HOST, _DECOY, _FITS = (
    np.array(column)
    for column in zip(*map(_core.blue_action, range(_core.ACTION_COUNT)), strict=True)
)
_IS_DECOY = _KIND == _core.BlueKind.DECOY
_BIT = np.where(_IS_DECOY, 1 << _DECOY, 0).astype(np.uint16)  # of the decoy that it places, if any


def _blocked_by(action: int) -> int:
    """What a decoy makes impossible: itself again; but Vsftpd takes Apache's port instead (Q1)."""
    return action_index(action_name(action).replace("DecoyVsftpd", "DecoyApache"))


_BLOCKERS = np.zeros(_core.ACTION_COUNT, np.uint16)  # the decoys, as bits, that block an action
np.bitwise_or.at(_BLOCKERS, [*map(_blocked_by, range(_core.ACTION_COUNT))], _BIT)


def action_masks(
    decoys: NDArray[np.uint16], *, monitor: bool = True, defender: bool = True, user0: bool = True
) -> Bools:
    """Actions that can work, (games, ACTION_COUNT), by the decoys on the hosts of each game.

    A decoy is masked out where it cannot be placed: never on that host, or not beside those that
    blue has placed there in this episode. All other actions always work; some of them can be left
    out altogether.

    Args:
        decoys: `TrueState.decoys`, which tell blue nothing new, since only blue places them.
        monitor: Whether Monitor may be played.
        defender: Whether actions on Defender may.
        user0: Whether actions on User0 may.
    """
    masks: Bools = ((decoys[:, _HOST] & _BLOCKERS) == 0) & (~_IS_DECOY | _FITS)
    if not monitor:
        masks &= _KIND != _core.BlueKind.MONITOR
    names_host = (_KIND != _core.BlueKind.SLEEP) & (_KIND != _core.BlueKind.MONITOR)
    for host, wanted in (("Defender", defender), ("User0", user0)):
        if not wanted:
            masks &= ~(names_host & np.equal(_HOST, host_index(host)))
    return masks


class ActionMasks:
    """The action masks of N games by what blue has played, where no true state is at hand.

    Tell it what was played, then which games begin anew:

        masks.update(batch.moves["blue_action"])
        masks.reset(np.flatnonzero(batch.truncations))
    """

    def __init__(
        self, games: int, *, monitor: bool = True, defender: bool = True, user0: bool = True
    ) -> None:
        """Begin an episode in every game, with Monitor and actions on Defender, User0 or not."""
        if games < 1:
            raise ValueError(f"masks must be for at least 1 game, got {games}")
        self._decoys = np.zeros((games, _core.HOST_COUNT), np.uint16)
        self._masks = partial(action_masks, monitor=monitor, defender=defender, user0=user0)

    @property
    def masks(self) -> Bools:
        """The masks as they now stand: see `action_masks`."""
        return self._masks(self._decoys)

    def reset(self, ids: Int64s | None = None) -> None:
        """Begin a new episode in all games, or in those named."""
        self._decoys[slice(None) if ids is None else ids] = 0

    def update(self, played: NDArray[np.integer], ids: Int64s | None = None) -> None:
        """Take note of the action that blue has played in each game, or in those named.

        Raises:
            ValueError: there is not one action a game.
            IndexError: an action is out of range; nothing was changed.
        """
        games = np.arange(len(self._decoys)) if ids is None else ids
        if played.shape != games.shape:
            raise ValueError(
                f"there must be one action a game, got {len(played)} for {len(games)} games"
            )
        for game in np.flatnonzero((played < 0) | (played >= _core.ACTION_COUNT)):
            raise IndexError(
                f"the action of game {games[game]} must be below {_core.ACTION_COUNT}, "
                f"got {played[game]}"
            )
        placed = self.masks[games, played]
        self._decoys[games[placed], _HOST[played[placed]]] |= _BIT[played[placed]]
        restored = _KIND[played] == _core.BlueKind.RESTORE
        self._decoys[games[restored], _HOST[played[restored]]] = 0

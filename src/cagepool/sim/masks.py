"""Action masks: which actions can work, from what blue itself can know."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cagepool import _core
from cagepool.sim import actions, hosts

Bools: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int64]

_KIND, _HOST, _DECOY, _FITS = (
    np.array(column)
    for column in zip(*map(_core.blue_action, range(_core.ACTION_COUNT)), strict=True)
)
_IS_DECOY = _KIND == _core.BlueKind.DECOY
_DECOYS_ON = np.array(  # row h: the decoy actions on host h
    [np.flatnonzero(_IS_DECOY & np.equal(_HOST, host)) for host in range(_core.HOST_COUNT)]
)


def _blocked_by(action: int) -> int:
    """What a decoy makes impossible: itself again; but Vsftpd takes Apache's port instead (Q1)."""
    return actions.index(actions.name(action).replace("DecoyVsftpd", "DecoyApache"))


_BLOCKED = np.array([_blocked_by(action) for action in range(_core.ACTION_COUNT)])
_BLOCKERS = np.zeros(_core.ACTION_COUNT, np.uint16)  # the decoys, as bits, that block an action
np.bitwise_or.at(_BLOCKERS, _BLOCKED[_IS_DECOY], 1 << _DECOY[_IS_DECOY].astype(np.uint16))


def action_masks(
    decoys: NDArray[np.uint16], *, monitor: bool = True, defender: bool = True, user0: bool = True
) -> Bools:
    """The masks of games, (games, ACTION_COUNT), by the decoys on their hosts: see `ActionMasks`.

    Args:
        decoys: `TrueState.decoys`, which tell blue nothing new, since only blue places them.
        monitor: whether Monitor may be played.
        defender: whether actions on Defender may.
        user0: whether actions on User0 may.
    """
    free: Bools = (decoys[:, _HOST] & _BLOCKERS) == 0
    return _first_mask(monitor=monitor, defender=defender, user0=user0) & free


def _first_mask(*, monitor: bool, defender: bool, user0: bool) -> Bools:
    """The mask of a new episode."""
    mask: Bools = ~_IS_DECOY | _FITS
    if not monitor:
        mask &= _KIND != _core.BlueKind.MONITOR
    names_host = (_KIND != _core.BlueKind.SLEEP) & (_KIND != _core.BlueKind.MONITOR)
    for host, wanted in (("Defender", defender), ("User0", user0)):
        if not wanted:
            mask &= ~(names_host & np.equal(_HOST, hosts.index(host)))
    return mask


class ActionMasks:
    """Actions that can work in each of N games, kept from one step to the next.

    A decoy is masked out where it cannot be placed: never on that host, or not beside those that
    blue has placed there in this episode. All other actions always work; some of them can be left
    out altogether. Tell it what was played, then which games begin anew:

        masks.update(batch.moves["blue_action"])
        masks.reset(np.flatnonzero(batch.truncations))
    """

    masks: Bools  # (games, ACTION_COUNT), true: may be played; changed in place

    def __init__(
        self, games: int, *, monitor: bool = True, defender: bool = True, user0: bool = True
    ) -> None:
        """Begin an episode in every game, with Monitor and actions on Defender, User0 or not."""
        if games < 1:
            raise ValueError(f"masks must be for at least 1 game, got {games}")
        self._first = _first_mask(monitor=monitor, defender=defender, user0=user0)
        self.masks = np.tile(self._first, (games, 1))

    def reset(self, ids: Ints | None = None) -> None:
        """Begin a new episode in all games, or in those named."""
        self.masks[slice(None) if ids is None else ids] = self._first

    def update(self, played: NDArray[np.integer], ids: Ints | None = None) -> None:
        """Take note of the action that blue has played in each game, or in those named.

        Raises:
            ValueError: there is not one action a game.
            IndexError: an action is out of range; nothing was changed.
        """
        games = np.arange(len(self.masks)) if ids is None else ids
        if played.shape != games.shape:
            raise ValueError(
                f"there must be one action a game, got {len(played)} for {len(games)} games"
            )
        for game in np.flatnonzero((played < 0) | (played >= _core.ACTION_COUNT)):
            raise IndexError(
                f"the action of game {games[game]} must be below {_core.ACTION_COUNT}, "
                f"got {played[game]}"
            )
        placed = _IS_DECOY[played] & self.masks[games, played]
        self.masks[games[placed], _BLOCKED[played[placed]]] = False
        restored = _KIND[played] == _core.BlueKind.RESTORE
        freed = _DECOYS_ON[_HOST[played[restored]]]
        self.masks[games[restored, None], freed] = self._first[freed]

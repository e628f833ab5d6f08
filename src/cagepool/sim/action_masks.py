"""Action masks: the actions that can succeed, from facts that blue knows."""

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
_BIT = np.where(_IS_DECOY, 1 << _DECOY, 0).astype(np.uint16)  # of the decoy that the action places


def _blocked_action(action: int) -> int:
    """Action that a decoy blocks: itself, but Vsftpd blocks Apache (docs/rules.md, Q1)."""
    return action_index(action_name(action).replace("DecoyVsftpd", "DecoyApache"))


_BLOCKERS = np.zeros(_core.ACTION_COUNT, np.uint16)  # decoys, as bits, that block each action
np.bitwise_or.at(_BLOCKERS, [*map(_blocked_action, range(_core.ACTION_COUNT))], _BIT)


def action_masks(
    decoys: NDArray[np.uint16], *, monitor: bool = True, defender: bool = True, user0: bool = True
) -> Bools:
    """Masks, (games, ACTION_COUNT), from the decoys on the hosts of each game.

    A decoy is masked where it cannot be placed: it never fits that host, or another decoy on the
    host has its port. All other actions can always be played; the flags mask some of them.

    Args:
        decoys: `TrueState.decoys`. Blue knows them, because only blue places decoys.
        monitor: Allow Monitor.
        defender: Allow actions on Defender.
        user0: Allow actions on User0.
    """
    masks: Bools = ((decoys[:, _HOST] & _BLOCKERS) == 0) & (~_IS_DECOY | _FITS)
    if not monitor:
        masks &= _KIND != _core.BlueKind.MONITOR
    has_host = (_KIND != _core.BlueKind.SLEEP) & (_KIND != _core.BlueKind.MONITOR)
    for host, is_allowed in (("Defender", defender), ("User0", user0)):
        if not is_allowed:
            masks &= ~(has_host & np.equal(_HOST, host_index(host)))
    return masks


class ActionMasks:
    """Action masks of N games from blue's actions, for environments without a true state.

    After every step, update it with the actions and reset the games whose episode ended:

        masks.update(batch.moves["blue_action"])
        masks.reset(np.flatnonzero(batch.truncations))
    """

    def __init__(
        self, games: int, *, monitor: bool = True, defender: bool = True, user0: bool = True
    ) -> None:
        """Start an episode in every game; for the flags see `action_masks`."""
        if games < 1:
            raise ValueError(f"masks must be for at least 1 game, got {games}")
        self._decoys = np.zeros((games, _core.HOST_COUNT), np.uint16)
        self._masks = partial(action_masks, monitor=monitor, defender=defender, user0=user0)

    @property
    def masks(self) -> Bools:
        """Current masks; see `action_masks`."""
        return self._masks(self._decoys)

    def reset(self, ids: Int64s | None = None) -> None:
        """Start a new episode in all games, or in those of `ids`."""
        self._decoys[slice(None) if ids is None else ids] = 0

    def update(self, actions: NDArray[np.integer], ids: Int64s | None = None) -> None:
        """Add the action that blue played in each game, or in those of `ids`.

        Raises:
            ValueError: there is not one action per game.
            IndexError: an action is out of range; nothing was changed.
        """
        games = np.arange(len(self._decoys)) if ids is None else ids
        if actions.shape != games.shape:
            raise ValueError(
                f"there must be one action per game, got {len(actions)} for {len(games)} games"
            )
        for game in np.flatnonzero((actions < 0) | (actions >= _core.ACTION_COUNT)):
            raise IndexError(
                f"the action of game {games[game]} must be below {_core.ACTION_COUNT}, "
                f"got {actions[game]}"
            )
        placed = self.masks[games, actions]
        self._decoys[games[placed], _HOST[actions[placed]]] |= _BIT[actions[placed]]
        restored = _KIND[actions] == _core.BlueKind.RESTORE
        self._decoys[games[restored], _HOST[actions[restored]]] = 0

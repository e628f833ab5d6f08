"""Action masks of the games in a batch, read off the decoys that blue has placed."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from cagepool import _core
from cagepool.sim.masks import ActionMasks


def action_masks(
    decoys: NDArray[np.uint16], *, monitor: bool, defender: bool, user0: bool
) -> NDArray[np.bool_]:
    """What `ActionMasks` says after the actions that placed these decoys, (games, ACTION_COUNT).

    Needing no history, it is right for restored games too and costs nothing until it is called.
    """
    hosts, blockers = _blockers()
    free: NDArray[np.bool_] = (decoys[:, hosts] & blockers) == 0
    return free & _first(monitor, defender, user0)


@cache
def _first(monitor: bool, defender: bool, user0: bool) -> NDArray[np.bool_]:  # noqa: FBT001
    return ActionMasks(1, monitor=monitor, defender=defender, user0=user0).masks


@cache
def _blockers() -> tuple[NDArray[np.int64], NDArray[np.uint16]]:
    """For each action its host, and the decoys on it, as bits, that make the action impossible."""
    hosts = np.zeros(_core.ACTION_COUNT, np.int64)
    blockers = np.zeros(_core.ACTION_COUNT, np.uint16)
    for action in range(_core.ACTION_COUNT):
        kind, hosts[action], decoy, _ = _core.blue_action(action)
        if kind == _core.BlueKind.DECOY:
            trial = ActionMasks(1)
            before = trial.masks[0].copy()
            trial.update(np.array([action]))
            blockers[before & ~trial.masks[0]] |= 1 << decoy
    return hosts, blockers

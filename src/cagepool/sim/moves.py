"""Moves of blue, green and red in names: as arrays over games, and of one game in words."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cagepool import _core
from cagepool.sim.names import (
    ACTIONS,
    EXPLOITS,
    HOSTS,
    RED_KINDS,
    SUBNETS,
    action_name,
    host_name,
    red_move_name,
)
from cagepool.types import Int64s, Records

Names = NDArray[np.object_]  # strings, and None where there is nothing to name

MOVE_NAMES = (
    *("blue", "blue_host", "blue_success"),
    *("red", "red_target", "exploit", "red_success", "green_host"),
)
"""Arrays of `MoveArrays.as_dict`."""

_OUTCOMES = {1: ", success", 0: ", failure", -1: ""}


def _name_table(names: "tuple[str, ...] | list[str]") -> Names:
    """Names by index; index -1 stands for None."""
    return np.array([*names, None], object)


_KINDS_AND_HOSTS = [name.partition(" ")[::2] for name in ACTIONS]
_BLUE_KINDS = _name_table([kind for kind, _ in _KINDS_AND_HOSTS])
_BLUE_HOSTS: Int64s = np.array(
    [HOSTS.index(host) if host else -1 for _, host in _KINDS_AND_HOSTS], np.int64
)
_RED_KINDS = _name_table(RED_KINDS)
_HOSTS = _name_table(HOSTS)
_EXPLOITS = _name_table(EXPLOITS)
_RED_TARGETS = np.full((len(RED_KINDS), len(HOSTS) + 1), None, object)  # by kind and target
_RED_TARGETS[:, :-1] = HOSTS
_RED_TARGETS[_core.RedKind.SWEEP, :-1] = [*SUBNETS, *[None] * (len(HOSTS) - len(SUBNETS))]
_RED_TARGETS[_core.RedKind.SLEEP] = None


class MoveArrays:
    """The moves of one step, one entry per game; arrays are made when they are first read.

    A success is 1, 0, or -1 for an action that reports none.
    """

    def __init__(self, codes: Records) -> None:
        """Take moves as the core writes them, `Batch.moves`."""
        self.codes = codes

    @property
    def blue_action(self) -> Int64s:
        """Index of blue's action, see `names.ACTIONS`."""
        actions: Int64s = self.codes["blue_action"].astype(np.int64)
        return actions

    @cached_property
    def blue(self) -> Names:
        """Blue's kind of action, such as `Restore` or `DecoyTomcat`."""
        return _BLUE_KINDS.take(self.codes["blue_action"])

    @cached_property
    def blue_host_index(self) -> Int64s:
        """Index of the host that blue acted on; -1: none."""
        return _BLUE_HOSTS.take(self.codes["blue_action"])

    @cached_property
    def blue_host(self) -> Names:
        """Host that blue acted on."""
        return _HOSTS.take(self.blue_host_index)

    @cached_property
    def blue_success(self) -> Int64s:
        """Success of blue's action."""
        return self._int64s("blue_success")

    @cached_property
    def red(self) -> Names:
        """Red's kind of action, see `names.RED_KINDS`."""
        return _RED_KINDS.take(self.codes["red_kind"])

    @cached_property
    def red_host_index(self) -> Int64s:
        """Index of the host that red acted on; -1: none, or a subnet."""
        is_sweep = self.codes["red_kind"] == _core.RedKind.SWEEP
        return np.where(is_sweep, np.int64(-1), self._int64s("red_target"))

    @cached_property
    def red_target(self) -> Names:
        """Host that red acted on, or subnet of a DiscoverRemoteSystems."""
        targets: Names = _RED_TARGETS[self.codes["red_kind"], self.codes["red_target"]]
        return targets

    @cached_property
    def exploit(self) -> Names:
        """Exploit of an ExploitRemoteService."""
        return _EXPLOITS.take(self.codes["exploit"])

    @cached_property
    def red_success(self) -> Int64s:
        """Success of red's action."""
        return self._int64s("red_success")

    @cached_property
    def green_host(self) -> Names:
        """Host that green scanned."""
        return _HOSTS.take(self.codes["green_host"])

    def as_dict(self) -> dict[str, NDArray[Any]]:
        """The arrays of `MOVE_NAMES`."""
        return {name: getattr(self, name) for name in MOVE_NAMES}

    def _int64s(self, field: str) -> Int64s:
        values: Int64s = self.codes[field].astype(np.int64)
        return values


def describe_moves(moves: np.void) -> str:
    """The moves of one game in words, such as `blue: Restore User1, success; red: Sleep`.

    Actions that report no success are named without one.
    """
    blue = f"blue: {action_name(moves['blue_action'])}{_OUTCOMES[int(moves['blue_success'])]}"
    green = (
        f"; green: PortScan {host_name(moves['green_host'])}" if moves["green_host"] >= 0 else ""
    )
    exploit = f" by {EXPLOITS[moves['exploit']]}" if moves["exploit"] >= 0 else ""
    red = f"{red_move_name(moves['red_kind'], moves['red_target'])}{exploit}"
    return f"{blue}{green}; red: {red}{_OUTCOMES[int(moves['red_success'])]}"

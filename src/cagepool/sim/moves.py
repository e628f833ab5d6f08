"""Moves of blue, green and red in names: as arrays over games, and of one game in words."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cagepool import _core
from cagepool.sim.masks import ScenarioIds
from cagepool.sim.names import EXPLOITS, RED_KINDS, Names, ScenarioNames, scenario_names
from cagepool.types import Int64s, Records

MOVE_NAMES = (
    *("blue", "blue_host", "blue_success"),
    *("red", "red_target", "exploit", "red_success", "green_host"),
)
"""Arrays of `MoveArrays.as_dict`."""

_OUTCOMES = {1: ", success", 0: ", failure", -1: ""}


_RED_KINDS: Names = np.array([*RED_KINDS, None], object)
_EXPLOITS: Names = np.array([*EXPLOITS, None], object)  # index -1 stands for None


class MoveArrays:
    """The moves of one step, one entry per game; arrays are made when they are first read.

    A success is 1, 0, or -1 for an action that reports none.
    """

    def __init__(
        self,
        codes: Records,
        names: ScenarioNames | None = None,
        scenario_ids: ScenarioIds | None = None,
    ) -> None:
        """Take moves as the core writes them, `Batch.moves`.

        Args:
            codes: The moves, (games,).
            names: Names of the games' scenarios; None: those of CAGE-2.
            scenario_ids: Scenario of each game, (games,); None: the first one.
        """
        self.codes = codes
        self._names = names or scenario_names()
        self._ids = np.zeros(len(codes), np.int64) if scenario_ids is None else scenario_ids

    @property
    def blue_action(self) -> Int64s:
        """Index of blue's action, see `names.ACTIONS`."""
        actions: Int64s = self.codes["blue_action"].astype(np.int64)
        return actions

    @cached_property
    def blue(self) -> Names:
        """Blue's kind of action, such as `Restore` or `DecoyTomcat`."""
        return self._names.blue_kinds(self.codes["blue_action"])

    @cached_property
    def blue_host_index(self) -> Int64s:
        """Index of the host that blue acted on; -1: none."""
        return self._names.blue_host_indices(self._ids, self.codes["blue_action"])

    @cached_property
    def blue_host(self) -> Names:
        """Host that blue acted on."""
        return self._names.hosts(self._ids, self.blue_host_index)

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
        kinds, targets = self.codes["red_kind"], self.codes["red_target"]
        return self._names.red_targets(self._ids, kinds, targets)

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
        return self._names.hosts(self._ids, self.codes["green_host"])

    def as_dict(self) -> dict[str, NDArray[Any]]:
        """The arrays of `MOVE_NAMES`."""
        return {name: getattr(self, name) for name in MOVE_NAMES}

    def _int64s(self, field: str) -> Int64s:
        values: Int64s = self.codes[field].astype(np.int64)
        return values


def describe_moves(moves: np.void, names: ScenarioNames | None = None, scenario: int = 0) -> str:
    """The moves of one game in words, such as `blue: Restore User1, success; red: Sleep`.

    Actions that report no success are named without one.

    Args:
        moves: The moves of the game.
        names: Names of the game's scenario; None: those of CAGE-2.
        scenario: Index of the scenario in these names.
    """
    names = names or scenario_names()
    played = names.blue_move(scenario, moves["blue_action"])
    blue = f"blue: {played}{_OUTCOMES[int(moves['blue_success'])]}"
    scanned = names.host(scenario, moves["green_host"])
    green = f"; green: PortScan {scanned}" if scanned else ""
    exploit = f" by {EXPLOITS[moves['exploit']]}" if moves["exploit"] >= 0 else ""
    red = f"{names.red_move(scenario, moves['red_kind'], moves['red_target'])}{exploit}"
    return f"{blue}{green}; red: {red}{_OUTCOMES[int(moves['red_success'])]}"

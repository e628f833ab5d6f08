"""The last step and the state of a game in names, for transcripts and drawings."""

from typing import Any, NamedTuple, TypedDict

import numpy as np

from cagepool import _core
from cagepool.scenarios import Scenario
from cagepool.sim.batch import Batch
from cagepool.sim.graph import MISINFORM_DECOYS
from cagepool.sim.names import DECOYS, EXPLOITS
from cagepool.types import Int64s

SUCCESS = {1: True, 0: False, -1: None}
_MISINFORM_BITS = dict(zip((14, 15), MISINFORM_DECOYS, strict=True))


class Moves(TypedDict):
    """Actions of a step; `None` as success means that the action reports none."""

    blue: str
    blue_success: bool | None
    green: str | None  # host that green scanned
    red: str
    red_success: bool | None
    exploit: str | None
    detected: bool | None  # none: there was nothing to detect
    reward: float


class Targets(TypedDict):
    """Hosts that blue and red acted on."""

    blue_target: str | None
    red_target: str | None


class HostStates(TypedDict):
    """State of a scenario; lists are by host."""

    access: list[int]  # of red: 0 none, 1 user, 2 privileged
    known: list[int]  # to red: 0 nothing, 1 the address, 2 the ports
    decoys: list[list[str]]
    stopped: bool  # OTService, on any host
    stopped_hosts: list[str]  # hosts on which OTService is stopped
    activity: list[int]  # that blue observed: 0 none, 1 scan, 2 exploit
    belief: list[int]  # of blue: 0 not compromised, 1 unknown, 2 user, 3 privileged


def last_moves(batch: Batch, game: int) -> Moves:
    """Actions of the last step; after a reset, of the last episode."""
    moves, names = batch.moves[game], batch.names
    scenario = int(batch.move_scenario_ids[game])
    exploit = int(moves["exploit"])
    return {
        "blue": names.blue_move(scenario, moves["blue_action"]),
        "blue_success": SUCCESS[int(moves["blue_success"])],
        "green": names.host(scenario, moves["green_host"]),
        "red": names.red_move(scenario, moves["red_kind"], moves["red_target"]),
        "red_success": SUCCESS[int(moves["red_success"])],
        "exploit": None if exploit < 0 else EXPLOITS[exploit],
        "detected": SUCCESS[int(moves["detected"])],
        "reward": float(batch.rewards[game]),
    }


def last_targets(batch: Batch, game: int) -> Targets:
    """Hosts that the actions of the last step were played on."""
    moves, names = batch.moves[game], batch.names
    scenario = int(batch.move_scenario_ids[game])
    red_has_none = moves["red_kind"] in (_core.RedKind.SLEEP, _core.RedKind.SWEEP)
    return {
        "blue_target": names.blue_host(scenario, moves["blue_action"]),
        "red_target": None if red_has_none else names.host(scenario, moves["red_target"]),
    }


def game_scenario(batch: Batch, game: int) -> Scenario:
    """Scenario of a game's current episode."""
    return batch.scenarios[int(batch.scenario_ids[game])]


def observed_hosts(batch: Batch, game: int) -> Int64s:
    """Blue's observation of each host, (hosts, 4)."""
    slots = game_scenario(batch, game).slots(batch.layout)
    rows: Int64s = batch.observations[game].astype(np.int64).reshape(-1, 4)[slots]
    return rows


def host_states(batch: Batch, game: int, known: Int64s) -> HostStates:
    """True state, knowledge of red and observation of blue; `known` is `red_knowledge(batch)`."""
    state: Any = batch.true_state[game]
    scenario = game_scenario(batch, game)
    hosts = len(scenario.hosts)
    stopped = [host for host, flags in ot_flags(batch, game).items() if not flags.is_running]
    return {
        "access": state["access"][:hosts].tolist(),
        "known": known[game, :hosts].tolist(),
        "decoys": [decoy_names(int(placed), scenario) for placed in state["decoys"][:hosts]],
        "stopped": bool(stopped),
        "stopped_hosts": stopped,
        "activity": observed_hosts(batch, game)[:, :2].sum(axis=1).tolist(),
        "belief": state["compromised"][:hosts].tolist(),
    }


def decoy_names(bits: int, scenario: Scenario) -> list[str]:
    """Decoys on a host; without Misinform the two highest bits count Vsftpd."""
    names = dict(enumerate(DECOYS)) | (_MISINFORM_BITS if _has_misinform(scenario) else {})
    return [name for bit, name in names.items() if bits >> bit & 1]


def decoy_list(bits: int, scenario: Scenario) -> str:
    """Decoys on a host as one text, with the number of Vsftpd."""
    repetitions = (bits & 0x3FFF if _has_misinform(scenario) else bits) >> len(DECOYS)
    names = " ".join(decoy_names(bits, scenario))
    return names + (f" x{repetitions + 1}" if repetitions else "")


def _has_misinform(scenario: Scenario) -> bool:
    return "Misinform" in scenario.action_kinds


class OtFlags(NamedTuple):
    """State of OTService on one host."""

    is_running: bool
    can_be_stopped: bool  # Impact can still stop it


def ot_flags(batch: Batch, game: int) -> dict[str, OtFlags]:
    """State of OTService by name of the host."""
    state, scenario = batch.true_state[game], game_scenario(batch, game)
    running, known = state["ot_running"], state["ot_pid_known"]
    return {
        scenario.hosts[host]: OtFlags(bool(running[host]), bool(known[host]))
        for host in np.flatnonzero(scenario.ot)
    }

"""Describes the last step of a game in names, and renders the game as text."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypedDict

import numpy as np

from cagepool import _core
from cagepool.scenarios import CAGE2, Scenario
from cagepool.sim.batch import Batch
from cagepool.sim.graph import MISINFORM_DECOYS
from cagepool.sim.names import DECOYS, EDITIONS, EXPLOITS, RED_AGENTS
from cagepool.types import Int64s

SUCCESS = {1: True, 0: False, -1: None}
_NONE = "."
_ACTIVITY = (_NONE, "Scan", "Exploit")
_COMPROMISED = (_NONE, "Unknown", "User", "Privileged")
_ACCESS = (_NONE, "user", "privileged")
_SUCCESS_WORDS = {None: "UNKNOWN", False: "FALSE", True: "TRUE"}
_BAR = "|"
_MISINFORM_BITS = dict(zip((14, 15), MISINFORM_DECOYS, strict=True))
_COLUMNS = (
    *("host", "subnet", _BAR, "activity", "compromised", _BAR),
    *("access", "priv", "seen", "unseen", "malware", "decoys"),
)


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
    """State of the network; lists are by host."""

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
    """True state, knowledge of red and observation of blue, by host.

    Args:
        batch: The games.
        game: Index of the game.
        known: `red_knowledge` of the batch, which is read for all games at once.
    """
    state: Any = batch.true_state[game]
    scenario = game_scenario(batch, game)
    hosts = len(scenario.hosts)
    stopped = [host for host, flags in _ot_flags(batch, game).items() if not flags.is_running]
    return {
        "access": state["access"][:hosts].tolist(),
        "known": known[game, :hosts].tolist(),
        "decoys": [_decoy_names(int(placed), scenario) for placed in state["decoys"][:hosts]],
        "stopped": bool(stopped),
        "stopped_hosts": stopped,
        "activity": observed_hosts(batch, game)[:, :2].sum(axis=1).tolist(),
        "belief": state["compromised"][:hosts].tolist(),
    }


def render_text(batch: Batch, game: int) -> str:
    """Render the last step, a table of the hosts, and OTService.

    `priv`, `seen` and `unseen` count red's sessions: privileged ones, and user-level ones that blue
    has seen and can remove, or has not seen.
    """
    hosts = range(len(game_scenario(batch, game).hosts))
    rows = [_host_row(batch, game, host) for host in hosts]
    lines = [*_last_step(batch, game), "", *_table(rows), "", *_ot_service(batch, game)]
    return "\n".join(lines) + "\n"


def _last_step(batch: Batch, game: int) -> Iterator[str]:
    state = batch.true_state[game]
    step = batch.core.steps(game)
    red, edition = list(RED_AGENTS)[state["red"]], list(EDITIONS)[state["edition"]]
    scenario = game_scenario(batch, game)
    network = "" if scenario == CAGE2 else f", scenario {scenario.name}"
    yield f"step {step}, red {red}, edition {edition}{network}"
    if step == 0:  # the moves are those of the last episode
        return
    moves = last_moves(batch, game)
    yield f"blue    {moves['blue']}: {_SUCCESS_WORDS[moves['blue_success']]}"
    if moves["green"]:
        yield f"green   PortScan {moves['green']}"
    exploit = f" by {moves['exploit']}" if moves["exploit"] else ""
    yield f"red     {moves['red']}{exploit}: {_SUCCESS_WORDS[moves['red_success']]}"
    yield f"reward  {moves['reward']:.1f}"


def _host_row(batch: Batch, game: int, host: int) -> list[str]:
    state, scenario = batch.true_state[game], game_scenario(batch, game)
    activity = int(observed_hosts(batch, game)[host, :2].sum())
    sessions = (state[kind][host] for kind in ("privileged", "user_seen", "user_unseen"))
    return [
        scenario.hosts[host],
        scenario.subnets[scenario.subnet_of[host]],
        _BAR,
        _ACTIVITY[activity],
        _COMPROMISED[state["compromised"][host]],
        _BAR,
        _ACCESS[state["access"][host]],
        *(str(count) if count else _NONE for count in sessions),
        "file" if state["malware"][host] else _NONE,
        _decoy_list(int(state["decoys"][host]), scenario),
    ]


def _decoy_names(bits: int, scenario: Scenario) -> list[str]:
    """Decoys on a host; without Misinform the two highest bits count Vsftpd."""
    names = dict(enumerate(DECOYS)) | (_MISINFORM_BITS if _has_misinform(scenario) else {})
    return [name for bit, name in names.items() if bits >> bit & 1]


def _decoy_list(bits: int, scenario: Scenario) -> str:
    repetitions = (bits & 0x3FFF if _has_misinform(scenario) else bits) >> len(DECOYS)
    names = " ".join(_decoy_names(bits, scenario))
    return (names + (f" x{repetitions + 1}" if repetitions else "")) or _NONE


def _has_misinform(scenario: Scenario) -> bool:
    return "Misinform" in scenario.action_kinds


class _OtFlags(NamedTuple):
    """State of OTService on one host."""

    is_running: bool
    can_be_stopped: bool  # Impact can still stop it


def _ot_flags(batch: Batch, game: int) -> dict[str, _OtFlags]:
    """State of OTService by name of the host."""
    state, scenario = batch.true_state[game], game_scenario(batch, game)
    running, known = state["ot_running"], state["ot_pid_known"]
    if np.ndim(running) == 0:  # the built-in network has one such host
        return {"Op_Server0": _OtFlags(bool(running), bool(known))}
    return {
        scenario.hosts[host]: _OtFlags(bool(running[host]), bool(known[host]))
        for host in np.flatnonzero(scenario.ot)
    }


def _ot_service(batch: Batch, game: int) -> Iterator[str]:
    flags = _ot_flags(batch, game)
    known = "knows" if batch.true_state[game]["ot_service_known"] else "does not know"
    for host, (is_running, can_be_stopped) in flags.items():
        place = f" on {host}" if len(flags) > 1 else ""
        state = "runs" if is_running else "is stopped"
        immune = "" if can_be_stopped else f"; Impact cannot stop it since {host} was restored"
        yield f"OTService{place} {state}; red {known} of it{immune}"
    if not flags:
        yield "OTService runs on no host"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    lines = [_COLUMNS, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    heading, *body = (
        [cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines
    )
    columns = "  ".join(heading)
    blue, truth = columns.index(_BAR), columns.rindex(_BAR)
    yield f"{'':{blue}}{_BAR}  {'what blue sees':{truth - blue - 3}}{_BAR}  what is true"
    yield columns.rstrip()
    for line in body:
        yield "  ".join(line).rstrip()

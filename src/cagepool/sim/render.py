"""Describes the last step of a game in names, and renders the game as text."""

from collections.abc import Iterator, Sequence
from typing import Any, TypedDict

import numpy as np

from cagepool import _core
from cagepool.sim import dtypes
from cagepool.sim.batch import Batch
from cagepool.sim.names import (
    DECOYS,
    EDITIONS,
    EXPLOITS,
    HOST_SUBNET,
    HOSTS,
    RED_AGENTS,
    action_name,
    host_name,
    red_move_name,
)
from cagepool.types import Int64s

SUCCESS = {1: True, 0: False, -1: None}
_NONE = "."
_ACTIVITY = (_NONE, "Scan", "Exploit")
_COMPROMISED = (_NONE, "Unknown", "User", "Privileged")
_ACCESS = (_NONE, "user", "privileged")
_SUCCESS_WORDS = {None: "UNKNOWN", False: "FALSE", True: "TRUE"}
_BAR = "|"
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
    stopped: bool  # OTService
    activity: list[int]  # that blue observed: 0 none, 1 scan, 2 exploit
    belief: list[int]  # of blue: 0 not compromised, 1 unknown, 2 user, 3 privileged


def last_moves(batch: Batch, game: int) -> Moves:
    """Actions of the last step; after a reset, of the last episode."""
    moves = batch.moves[game]
    return {
        "blue": action_name(moves["blue_action"]),
        "blue_success": SUCCESS[int(moves["blue_success"])],
        "green": _name_or_none(HOSTS, moves["green_host"]),
        "red": red_move_name(moves["red_kind"], moves["red_target"]),
        "red_success": SUCCESS[int(moves["red_success"])],
        "exploit": _name_or_none(EXPLOITS, moves["exploit"]),
        "detected": SUCCESS[int(moves["detected"])],
        "reward": float(batch.rewards[game]),
    }


def last_targets(batch: Batch, game: int) -> Targets:
    """Hosts that the actions of the last step were played on."""
    moves = batch.moves[game]
    kind, host, _, _ = _core.blue_action(int(moves["blue_action"]))
    blue_has_none = kind in (_core.BlueKind.SLEEP, _core.BlueKind.MONITOR)
    red_has_none = moves["red_kind"] in (_core.RedKind.SLEEP, _core.RedKind.SWEEP)
    return {
        "blue_target": None if blue_has_none else host_name(host),
        "red_target": None if red_has_none else host_name(moves["red_target"]),
    }


def red_knowledge(batch: Batch) -> Int64s:
    """What red knows of each host, (games, 13): 0 nothing, 1 the address, 2 the ports."""
    rows = np.zeros(batch.games, dtypes.TRACE_ROW)
    batch.core.write_trace_rows(dtypes.as_bytes(rows))
    known: Int64s = np.where(rows["s_red_ports"] != 0, 2, rows["s_known_ip"]).astype(np.int64)
    return known


def host_states(batch: Batch, game: int, known: Int64s) -> HostStates:
    """True state, knowledge of red and observation of blue, by host.

    Args:
        batch: The games.
        game: Index of the game.
        known: `red_knowledge` of the batch, which is read for all games at once.
    """
    state: Any = batch.true_state[game]
    observed = batch.observations[game].astype(int).reshape(_core.HOST_COUNT, -1)
    return {
        "access": state["access"].tolist(),
        "known": known[game].tolist(),
        "decoys": [_decoy_names(int(placed)) for placed in state["decoys"]],
        "stopped": not state["ot_running"],
        "activity": observed[:, :2].sum(axis=1).tolist(),
        "belief": state["compromised"].tolist(),
    }


def render_text(batch: Batch, game: int) -> str:
    """Render the last step, a table of the hosts, and OTService.

    `priv`, `seen` and `unseen` count red's sessions: privileged ones, and user-level ones that blue
    has seen and can remove, or has not seen.
    """
    rows = [_host_row(batch, game, host) for host in range(_core.HOST_COUNT)]
    lines = [*_last_step(batch, game), "", *_table(rows), "", _ot_service(batch, game)]
    return "\n".join(lines) + "\n"


def _last_step(batch: Batch, game: int) -> Iterator[str]:
    state = batch.true_state[game]
    step = batch.core.steps(game)
    red, edition = list(RED_AGENTS)[state["red"]], list(EDITIONS)[state["edition"]]
    yield f"step {step}, red {red}, edition {edition}"
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
    state = batch.true_state[game]
    activity = int(batch.observations[game, 4 * host : 4 * host + 2].sum())
    sessions = (state[kind][host] for kind in ("privileged", "user_seen", "user_unseen"))
    return [
        host_name(host),
        HOST_SUBNET[host_name(host)],
        _BAR,
        _ACTIVITY[activity],
        _COMPROMISED[state["compromised"][host]],
        _BAR,
        _ACCESS[state["access"][host]],
        *(str(count) if count else _NONE for count in sessions),
        "file" if state["malware"][host] else _NONE,
        _decoy_list(int(state["decoys"][host])),
    ]


def _decoy_names(bits: int) -> list[str]:
    return [name for bit, name in enumerate(DECOYS) if bits >> bit & 1]


def _name_or_none(names: Sequence[str], index: int) -> str | None:
    return None if index < 0 else names[index]


def _decoy_list(bits: int) -> str:
    repetitions = bits >> len(DECOYS)
    return (" ".join(_decoy_names(bits)) + (f" x{repetitions + 1}" if repetitions else "")) or _NONE


def _ot_service(batch: Batch, game: int) -> str:
    state = batch.true_state[game]
    running = "runs" if state["ot_running"] else "is stopped"
    known = "red knows of it" if state["ot_service_known"] else "red does not know of it"
    immune = (
        "" if state["ot_pid_known"] else "; Impact cannot stop it since Op_Server0 was restored"
    )
    return f"OTService {running}; {known}{immune}"


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

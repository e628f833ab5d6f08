"""Renders a game as text: blue's view of the network beside the true state."""

from collections.abc import Iterator, Sequence

from cagepool import _core
from cagepool.sim.batch import Batch
from cagepool.sim.names import (
    DECOYS,
    EDITIONS,
    EXPLOITS,
    HOST_SUBNET,
    RED_AGENTS,
    action_name,
    host_name,
    red_move_name,
)

_NONE = "."
_ACTIVITY = (_NONE, "Scan", "Exploit")
_COMPROMISED = (_NONE, "Unknown", "User", "Privileged")
_ACCESS = (_NONE, "user", "privileged")
_SUCCESS = {-1: "UNKNOWN", 0: "FALSE", 1: "TRUE"}
_BAR = "|"
_COLUMNS = (
    *("host", "subnet", _BAR, "activity", "compromised", _BAR),
    *("access", "priv", "seen", "unseen", "malware", "decoys"),
)


def render_text(batch: Batch, game: int) -> str:
    """Render the last step, a table of the hosts, and OTService.

    `priv`, `seen` and `unseen` count red's sessions: privileged ones, and user-level ones that blue
    has seen and can remove, or has not seen.
    """
    rows = [_host_row(batch, game, host) for host in range(_core.HOST_COUNT)]
    lines = [*_last_step(batch, game), "", *_table(rows), "", _ot_service(batch, game)]
    return "\n".join(lines) + "\n"


def _last_step(batch: Batch, game: int) -> Iterator[str]:
    state, moves = batch.true_state[game], batch.moves[game]
    step = batch.core.steps(game)
    red, edition = list(RED_AGENTS)[state["red"]], list(EDITIONS)[state["edition"]]
    yield f"step {step}, red {red}, edition {edition}"
    if step == 0:  # the moves are those of the last episode
        return
    yield f"blue    {action_name(moves['blue_action'])}: {_SUCCESS[int(moves['blue_success'])]}"
    if moves["green_host"] >= 0:
        yield f"green   PortScan {host_name(moves['green_host'])}"
    exploit = f" by {EXPLOITS[moves['exploit']]}" if moves["exploit"] >= 0 else ""
    red_move = red_move_name(moves["red_kind"], moves["red_target"])
    yield f"red     {red_move}{exploit}: {_SUCCESS[int(moves['red_success'])]}"
    yield f"reward  {batch.rewards[game]:.1f}"


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
        _decoy_names(int(state["decoys"][host])),
    ]


def _decoy_names(bits: int) -> str:
    names = [name for bit, name in enumerate(DECOYS) if bits >> bit & 1]
    repetitions = bits >> len(DECOYS)
    return (" ".join(names) + (f" x{repetitions + 1}" if repetitions else "")) or _NONE


def _ot_service(batch: Batch, game: int) -> str:
    state = batch.true_state[game]
    running = "runs" if state["ot_running"] else "is stopped"
    known = "red knows of it" if state["ot_service_known"] else "red does not know of it"
    exposed = "can stop it" if state["ot_pid_known"] else "can no longer stop it"
    return f"OTService {running}; {known}; Impact {exposed}"


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

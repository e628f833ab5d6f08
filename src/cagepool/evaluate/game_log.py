"""Single games of an evaluation in full, for the replay of the report (`games.json`)."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from cagepool import _core
from cagepool.evaluate.rollout import Trial, game_seeds, opened
from cagepool.evaluate.statistics import Tally
from cagepool.evaluate.transcript import turn_of
from cagepool.sim import Batch, dtypes
from cagepool.sim.names import DECOYS, HOSTS, host_name
from cagepool.types import Bytes

FORMAT = 1


def recorded_games(trial: Trial, tallies: dict[str, Tally]) -> dict[str, Any]:
    """The typical and the worst game against each red, as plain values fit for JSON.

    They are played again, natively, from the seeds of the trial and the actions that were played.
    """
    games = [
        {"title": f"{title} game against {red}", **_game(trial, red, place, tally)}
        for red, tally in tallies.items()
        for title, place in _chosen(tally).items()
    ]
    return {"format": FORMAT, "hosts": HOSTS, "edition": trial.edition, "games": games}


def _chosen(tally: Tally) -> dict[str, int]:
    """The median of the first games and the worst of them, if that one is worse."""
    totals = tally.totals[: len(tally.actions), -1]
    by_total = np.argsort(totals, kind="stable")
    typical, worst = int(by_total[len(by_total) // 2]), int(by_total[0])
    chosen = {"typical": typical}
    if totals[worst] < totals[typical]:
        chosen["worst"] = worst
    return chosen


def _game(trial: Trial, red: str, place: int, tally: Tally) -> dict[str, Any]:
    seed = game_seeds(trial, red)[place : place + 1]
    return {
        "red": red,
        "seed": int(seed[0]),
        "total": float(tally.totals[place, -1]),
        "turns": list(_turns(opened(trial, red, seed), tally.actions[place])),
    }


def _turns(batch: Batch, played: Bytes) -> Iterator[dict[str, Any]]:
    row = np.zeros(1, dtypes.TRACE_ROW)
    for step, action in enumerate(played):
        batch.step(np.array([action], np.int64))
        batch.core.write_trace_rows(dtypes.as_bytes(row))
        turn = asdict(turn_of(batch, step))
        del turn["observation"]  # told host by host instead
        yield turn | _targets(batch) | _state(batch, row[0])


def _targets(batch: Batch) -> dict[str, str | None]:
    moves = batch.moves[0]
    kind, host, _, _ = _core.blue_action(int(moves["blue_action"]))
    aimless = kind in (_core.BlueKind.SLEEP, _core.BlueKind.MONITOR)
    hostless = moves["red_kind"] in (_core.RedKind.SLEEP, _core.RedKind.SWEEP)
    return {
        "blue_target": None if aimless else host_name(host),
        "red_target": None if hostless else host_name(moves["red_target"]),
    }


def _state(batch: Batch, row: Any) -> dict[str, Any]:
    """What is true, what red knows and what blue sees after the step, host by host."""
    state = batch.true_state[0]
    seen = batch.observations[0].astype(int).reshape(_core.HOST_COUNT, -1)
    scanned = row["s_red_ports"] != 0
    return {
        "access": state["access"].tolist(),
        "known": np.where(scanned, 2, row["s_known_ip"]).tolist(),  # 1 an address, 2 its ports
        "decoys": [_decoys(int(placed)) for placed in state["decoys"]],
        "stopped": not state["ot_running"],
        "activity": seen[:, :2].sum(axis=1).tolist(),
        "belief": state["compromised"].tolist(),
    }


def _decoys(placed: int) -> list[str]:
    return [name for bit, name in enumerate(DECOYS) if placed >> bit & 1]

"""Games step by step: recorded for the replay of the report, or as a transcript in words."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cagepool import _core
from cagepool.evaluate.defenders import Defender
from cagepool.evaluate.rollout import Trial, game_seeds, play_steps, start_games
from cagepool.evaluate.statistics import GameStatistics
from cagepool.runs.schema import GamesFile, RecordedGame, RecordedTurn, Turn
from cagepool.sim import Batch, dtypes
from cagepool.sim.names import DECOYS, EXPLOITS, HOSTS, action_name, host_name, red_move_name
from cagepool.types import Bytes

SUCCESS = {1: True, 0: False, -1: None}


class TranscriptTurn(Turn, frozen=True, kw_only=True):
    """One step of a game with the observation of blue after it."""

    observation: dict[str, str]  # by host: bits of activity and of compromise, where any is set


def transcript(defender: Defender, trial: Trial, red: str) -> list[TranscriptTurn]:
    """Play the first game of a trial against one red."""
    batch = start_games(trial, red, game_seeds(trial, red)[:1])
    return [
        TranscriptTurn(**_actions_taken(batch, step - 1), observation=_observed_bits(batch))
        for step, _ in play_steps(defender, trial, batch)
    ]


def record_games(trial: Trial, statistics: Mapping[str, GameStatistics]) -> GamesFile:
    """Record the typical and the worst game against each red.

    Each is played again, natively, from its seed and the actions that blue played.
    """
    games = [
        _record_game(trial, red, title, index, played)
        for red, played in statistics.items()
        for title, index in _typical_and_worst(played).items()
    ]
    return GamesFile(hosts=list(HOSTS), edition=trial.edition, games=games)


def _typical_and_worst(statistics: GameStatistics) -> dict[str, int]:
    """Indices of the median game and, if it is worse, of the worst one."""
    totals = statistics.totals[: len(statistics.actions), -1]
    by_total = np.argsort(totals, kind="stable")
    typical, worst = int(by_total[len(by_total) // 2]), int(by_total[0])
    indices = {"typical": typical}
    if totals[worst] < totals[typical]:
        indices["worst"] = worst
    return indices


def _record_game(
    trial: Trial, red: str, title: str, index: int, statistics: GameStatistics
) -> RecordedGame:
    seed = game_seeds(trial, red)[index : index + 1]
    return RecordedGame(
        title=f"{title} game against {red}",
        red=red,
        seed=int(seed[0]),
        total=float(statistics.totals[index, -1]),
        turns=_record_turns(start_games(trial, red, seed), statistics.actions[index]),
    )


def _record_turns(batch: Batch, actions: Bytes) -> list[RecordedTurn]:
    row = np.zeros(1, dtypes.TRACE_ROW)
    turns = []
    for step, action in enumerate(actions):
        batch.step(np.array([action], np.int64))
        batch.core.write_trace_rows(dtypes.as_bytes(row))
        turns.append(
            RecordedTurn(**_actions_taken(batch, step), **_targets(batch), **_state(batch, row[0]))
        )
    return turns


def _actions_taken(batch: Batch, step: int) -> dict[str, Any]:
    """Fields of `Turn` for the last step of a batch with one game."""
    moves = batch.moves[0]
    return {
        "step": step,
        "blue": action_name(moves["blue_action"]),
        "blue_success": SUCCESS[int(moves["blue_success"])],
        "green": _name_or_none(HOSTS, moves["green_host"]),
        "red": red_move_name(moves["red_kind"], moves["red_target"]),
        "red_success": SUCCESS[int(moves["red_success"])],
        "exploit": _name_or_none(EXPLOITS, moves["exploit"]),
        "detected": SUCCESS[int(moves["detected"])],
        "reward": float(batch.rewards[0]),
    }


def _targets(batch: Batch) -> dict[str, Any]:
    moves = batch.moves[0]
    kind, host, _, _ = _core.blue_action(int(moves["blue_action"]))
    blue_has_none = kind in (_core.BlueKind.SLEEP, _core.BlueKind.MONITOR)
    red_has_none = moves["red_kind"] in (_core.RedKind.SLEEP, _core.RedKind.SWEEP)
    return {
        "blue_target": None if blue_has_none else host_name(host),
        "red_target": None if red_has_none else host_name(moves["red_target"]),
    }


def _state(batch: Batch, row: Any) -> dict[str, Any]:
    """True state, knowledge of red and observation of blue after the step, by host."""
    state = batch.true_state[0]
    observed = batch.observations[0].astype(int).reshape(_core.HOST_COUNT, -1)
    scanned = row["s_red_ports"] != 0
    return {
        "access": state["access"].tolist(),
        "known": np.where(scanned, 2, row["s_known_ip"]).tolist(),
        "decoys": [_decoy_names(int(placed)) for placed in state["decoys"]],
        "stopped": not state["ot_running"],
        "activity": observed[:, :2].sum(axis=1).tolist(),
        "belief": state["compromised"].tolist(),
    }


def _decoy_names(placed: int) -> list[str]:
    return [name for bit, name in enumerate(DECOYS) if placed >> bit & 1]


def _name_or_none(names: Sequence[str], index: int) -> str | None:
    return None if index < 0 else names[index]


def _observed_bits(batch: Batch) -> dict[str, str]:
    groups = batch.observations[0].astype(int).reshape(len(HOSTS), -1)
    return {
        host: "{}{} {}{}".format(*bits)
        for host, bits in zip(HOSTS, groups, strict=True)
        if bits.any()
    }

"""Games step by step: recorded for the replay of the report, or as a transcript in words."""

from collections.abc import Mapping

import numpy as np

from cagepool.evaluate.defenders import Defender
from cagepool.evaluate.rollout import Trial, game_seeds, play_steps, start_games
from cagepool.evaluate.statistics import GameStatistics
from cagepool.runs.schema import GamesFile, RecordedGame, RecordedTurn, Turn
from cagepool.sim import Batch
from cagepool.sim.names import HOSTS
from cagepool.sim.render import host_states, last_moves, last_targets, red_knowledge
from cagepool.types import Bytes


class TranscriptTurn(Turn, frozen=True, kw_only=True):
    """One step of a game with the observation of blue after it."""

    observation: dict[str, str]  # by host: bits of activity and of compromise, where any is set


def transcript(defender: Defender, trial: Trial, red: str) -> list[TranscriptTurn]:
    """Play the first game of a trial against one red."""
    batch = start_games(trial, red, game_seeds(trial, red)[:1])
    return [
        TranscriptTurn(step=step - 1, **last_moves(batch, 0), observation=_observed_bits(batch))
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
    turns = []
    for step, action in enumerate(actions):
        batch.step(np.array([action], np.int64))
        moves, targets = last_moves(batch, 0), last_targets(batch, 0)
        states = host_states(batch, 0, red_knowledge(batch))
        turns.append(RecordedTurn(step=step, **moves, **targets, **states))
    return turns


def _observed_bits(batch: Batch) -> dict[str, str]:
    groups = batch.observations[0].astype(int).reshape(len(HOSTS), -1)
    return {
        host: "{}{} {}{}".format(*bits)
        for host, bits in zip(HOSTS, groups, strict=True)
        if bits.any()
    }

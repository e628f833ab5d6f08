"""Games step by step: recorded for the replay of the report, or as a transcript in words."""

from collections.abc import Mapping
from typing import TypedDict

import numpy as np

from cagepool.evaluate.defenders import Defender
from cagepool.evaluate.rollout import Trial, game_seeds, play_steps, start_games
from cagepool.evaluate.statistics import GameStatistics
from cagepool.runs.schema import GamesFile, RecordedGame, RecordedTurn, Turn
from cagepool.sim import Batch, BeliefConfig, BeliefFilter
from cagepool.sim.belief import BELIEF_REDS
from cagepool.sim.names import HOSTS
from cagepool.sim.render import host_states, last_moves, last_targets, red_knowledge
from cagepool.types import Bytes, Float64s


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
    settings = batch.config
    belief = BeliefFilter(
        1, BeliefConfig(edition=str(settings.edition), green=bool(settings.green), capacity=512)
    )
    for step, action in enumerate(actions):
        batch.step(np.array([action], np.int64))
        belief.update(np.array([action], np.int64), batch.observations)
        moves, targets = last_moves(batch, 0), last_targets(batch, 0)
        states = host_states(batch, 0, red_knowledge(batch))
        turns.append(
            RecordedTurn(step=step, **moves, **targets, **states, **_believed_percents(belief))
        )
    return turns


class _BelievedPercents(TypedDict, total=False):
    """Fields of a `RecordedTurn` about blue's exact belief."""

    believed_privileged: list[int]
    believed_user: list[int]
    believed_reds: dict[str, int]


def _believed_percents(belief: BeliefFilter) -> _BelievedPercents:
    if not belief.fits[0]:
        return {}
    said = belief.probabilities[0]
    reds = zip(BELIEF_REDS, _percents(said["reds"]), strict=True)
    return {
        "believed_privileged": _percents(said["privileged"]),
        "believed_user": _percents(said["user_seen"] + said["user_unseen"]),
        "believed_reds": {red: percent for red, percent in reds if percent},
    }


def _percents(probabilities: Float64s) -> list[int]:
    return [round(100 * float(value)) for value in probabilities]


def _observed_bits(batch: Batch) -> dict[str, str]:
    groups = batch.observations[0].astype(int).reshape(len(HOSTS), -1)
    return {
        host: "{}{} {}{}".format(*bits)
        for host, bits in zip(HOSTS, groups, strict=True)
        if bits.any()
    }

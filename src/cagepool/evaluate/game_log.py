"""Games step by step: recorded for the replay of the report, or as a transcript in words."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from cagepool.evaluate.rollout import Trial, game_seeds, play_steps, start_games
from cagepool.evaluate.statistics import GameStatistics
from cagepool.policy.defenders import Defender
from cagepool.render.game import (
    game_scenario,
    host_states,
    last_moves,
    last_targets,
    observed_hosts,
)
from cagepool.render.plan import scenario_plan
from cagepool.runs.schema import GamesFile, RecordedGame, RecordedScenario, RecordedTurn, Turn
from cagepool.scenarios import CAGE2, Layout, Scenario
from cagepool.sim import Batch, BeliefConfig, BeliefFilter
from cagepool.sim.belief import BELIEF_REDS
from cagepool.sim.red_observation import red_knowledge
from cagepool.types import Float64s


class TranscriptTurn(Turn, frozen=True, kw_only=True):
    """One step of a game with the observation of blue after it."""

    observation: dict[str, str]  # by host: bits of activity and of compromise, where any is set


def transcript(defender: Defender, trial: Trial, red: str) -> list[TranscriptTurn]:
    """Play the first game of a trial against one red."""
    first = replace(trial, scenario=trial.scenarios[:1])
    batch = start_games(first, red, game_seeds(first, red, *first.scenarios)[:1])
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
    return GamesFile(edition=trial.edition, games=games)


def _typical_and_worst(statistics: GameStatistics) -> dict[str, int]:
    """Indices of the median game and, if it is worse, of the worst one, over all scenarios."""
    totals = statistics.totals[:, :, -1].ravel()[: len(statistics.actions)]
    by_total = np.argsort(totals, kind="stable")
    typical, worst = int(by_total[len(by_total) // 2]), int(by_total[0])
    indices = {"typical": typical}
    if totals[worst] < totals[typical]:
        indices["worst"] = worst
    return indices


def _record_game(
    trial: Trial, red: str, title: str, index: int, statistics: GameStatistics
) -> RecordedGame:
    episode, number = divmod(index, len(trial.scenarios))
    scenario = trial.scenarios[number]
    seed = game_seeds(trial, red, scenario)[episode : episode + 1]
    layout = trial.layout or Layout.of(trial.scenarios)
    batch = start_games(replace(trial, scenario=scenario, layout=layout), red, seed)
    where = "" if scenario == CAGE2 else f" on {scenario.name}"
    return RecordedGame(
        title=f"{title} game against {red}{where}",
        red=red,
        seed=int(seed[0]),
        total=float(statistics.totals[episode, number, -1]),
        scenario=recorded_scenario(scenario),
        turns=record_turns(batch, statistics.actions[index]),
    )


def recorded_scenario(scenario: Scenario) -> RecordedScenario:
    """What the replay needs to draw a scenario."""
    plan = scenario_plan(scenario)
    return RecordedScenario(
        name=scenario.name,
        hash=scenario.hash,
        hosts=list(scenario.hosts),
        zones={zone: list(hosts) for zone, hosts in plan.zones.items()},
        links=list(plan.links),
        foothold=plan.foothold,
        targets=list(plan.targets),
        defender=plan.defender,
    )


def record_turns(batch: Batch, actions: NDArray[np.integer]) -> list[RecordedTurn]:
    """Play actions of blue in a batch of one game that has just begun, and record each step."""
    turns = []
    belief = _belief_filter(batch)
    for step, action in enumerate(actions):
        played = np.array([action], np.int64)
        batch.step(played)
        moves, targets = last_moves(batch, 0), last_targets(batch, 0)
        states = host_states(batch, 0, red_knowledge(batch))
        believed: _BelievedPercents = {}
        if belief is not None:
            belief.update(played, batch.observations)
            believed = _believed_percents(belief)
        turns.append(RecordedTurn(step=step, **moves, **targets, **states, **believed))
    return turns


def _belief_filter(batch: Batch) -> BeliefFilter | None:
    """Filter of blue's exact belief, which there is for CAGE-2 only."""
    if batch.scenarios != (CAGE2,):
        return None
    settings = batch.config
    return BeliefFilter(
        1, BeliefConfig(edition=str(settings.edition), green=bool(settings.green), capacity=512)
    )


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
    hosts, groups = game_scenario(batch, 0).hosts, observed_hosts(batch, 0)
    return {
        host: "{}{} {}{}".format(*bits)
        for host, bits in zip(hosts, groups, strict=True)
        if bits.any()
    }

"""Games step by step: those recorded for the replay, and transcripts."""

import json
from typing import Any

import numpy as np
import pytest

from cagepool import runs
from cagepool.evaluate import Trial
from cagepool.evaluate.game_log import (
    TranscriptTurn,
    record_games,
    transcript,
)
from cagepool.evaluate.protocol import Evaluation, evaluate
from cagepool.evaluate.rollout import episode_totals
from cagepool.policy import scripted_defender
from cagepool.policy.load import load
from cagepool.sim.names import HOSTS, OFFICIAL_REDS
from tests.scenarios.files import sample

TRIAL = Trial(episodes=41, seed=2)


@pytest.fixture(scope="module")
def result() -> Evaluation:
    return evaluate(load("random"), TRIAL)


@pytest.fixture(scope="module")
def games(result: Evaluation) -> list[dict[str, Any]]:
    recorded = json.loads(runs.to_json(record_games(TRIAL, result.statistics)))
    assert (recorded["format"], recorded["edition"]) == (1, "2.1")
    assert all(game["scenario"]["hosts"] == [*HOSTS] for game in recorded["games"])
    return [*recorded["games"]]


def test_the_typical_and_the_worst_game_against_each_red_are_recorded(
    result: Evaluation, games: list[dict[str, Any]]
) -> None:
    assert [(game["red"], game["title"].split()[0]) for game in games] == [
        (red, title) for red in OFFICIAL_REDS for title in ("typical", "worst")
    ]
    for game in games:
        totals = result.statistics[game["red"]].totals[:, 0, -1]
        chosen = np.median(totals) if game["title"].startswith("typical") else totals.min()
        assert game["total"] == chosen
        assert sum(turn["reward"] for turn in game["turns"]) == pytest.approx(chosen)


def test_games_that_are_all_alike_are_recorded_once() -> None:
    asleep = evaluate(load("sleep"), TRIAL)

    games = record_games(TRIAL, asleep.statistics).games

    assert [game.title for game in games if game.red == "SleepAgent"] == [
        "typical game against SleepAgent"
    ]


def test_a_recorded_game_goes_as_its_transcript() -> None:
    trial = Trial(episodes=2, seed=9)
    played = evaluate(load("react-restore"), trial)
    (first, *_) = (
        game
        for game in record_games(trial, played.statistics).games
        if game.total == played.statistics[game.red].totals[0, 0, -1]
    )

    steps = transcript(load("react-restore"), trial, first.red)

    names = ("step", "blue", "blue_success", "red", "red_success", "exploit", "detected", "reward")
    for turn, expected in zip(first.turns, steps, strict=True):
        assert [getattr(turn, name) for name in names] == [
            getattr(expected, name) for name in names
        ]


def test_each_turn_tells_truth_and_belief_of_every_host(games: list[dict[str, Any]]) -> None:
    b_line = games[0]["turns"]
    for turn in (turn for game in games for turn in game["turns"]):
        for name, most in (("access", 2), ("known", 2), ("activity", 2), ("belief", 3)):
            assert len(turn[name]) == len(HOSTS)
            assert {*turn[name]} <= {*range(most + 1)}
    sweep, scan, exploit = b_line[:3]
    user = scan["red_target"]
    assert sweep["red_target"] is None
    assert sweep["known"] == [1 if host.startswith("User") else 0 for host in HOSTS]
    assert scan["known"][HOSTS.index(user)] == 2
    assert scan["activity"][HOSTS.index(user)] in (0, 1)  # a decoy placed there may hide it
    assert exploit["red"] == f"ExploitRemoteService {user}"
    assert sweep["access"] == [2 if host == "User0" else 0 for host in HOSTS]
    assert b_line[-1]["stopped"] == (b_line[-1]["reward"] <= -10)


def test_decoys_are_named_on_the_host_where_they_were_placed(games: list[dict[str, Any]]) -> None:
    placed = [
        turn
        for game in games
        for turn in game["turns"]
        if turn["blue"].startswith("Decoy") and turn["blue_success"]
    ]

    assert placed
    for turn in placed:
        decoy = turn["blue"].split()[0].removeprefix("Decoy")
        assert decoy in turn["decoys"][HOSTS.index(turn["blue_target"])]


def told(
    blue: str = "sleep", red: str = "B_lineAgent", trial: Trial | None = None
) -> list[TranscriptTurn]:
    return transcript(scripted_defender(blue), trial or Trial(), red)


@pytest.mark.parametrize("red", ["B_lineAgent", "RedMeanderAgent", "SleepAgent"])
@pytest.mark.parametrize("blue", ["random", "react-restore"])
def test_a_transcript_is_the_first_game_of_the_trial(blue: str, red: str) -> None:
    trial = Trial(episodes=2, seed=7)

    game = told(blue, red, trial)

    totals = episode_totals(scripted_defender(blue), trial, red)[0]
    sums = [sum(turn.reward for turn in game[:length]) for length in trial.lengths]
    assert sums == pytest.approx(totals, abs=1e-9)  # rounding of the sums


def test_b_line_goes_its_way_through_the_network() -> None:
    game = told()

    scan = game[1]
    user = scan.red.removeprefix("DiscoverNetworkServices ")
    assert game[0] == TranscriptTurn(
        step=0,
        blue="Sleep",
        blue_success=None,
        green=None,
        red="DiscoverRemoteSystems User",
        red_success=True,
        exploit=None,
        detected=None,
        observation={},
        reward=0.0,
    )
    assert scan.observation == {user: "10 00"}
    assert game[2].red == f"ExploitRemoteService {user}"
    assert game[-1].red == "Impact Op_Server0"
    assert game[-1].reward == -13.1


def test_an_exploit_is_named_and_so_is_its_detection() -> None:
    games = [told("react-remove", "RedMeanderAgent", Trial(seed=seed)) for seed in range(10)]
    attempts = [turn for game in games for turn in game if turn.exploit]

    seen = [turn for turn in attempts if turn.detected]
    unseen = [turn for turn in attempts if turn.detected is False]
    brute = [turn for turn in attempts if turn.exploit == "SSHBruteForce"]
    assert seen
    assert unseen
    assert brute
    assert all(turn.observation[turn.red.split()[1]] == "11 01" for turn in seen)
    assert all(turn.observation[turn.red.split()[1]].startswith("10") for turn in unseen)
    assert all(turn.detected is None for turn in brute)


def test_a_decoy_that_cannot_be_placed_is_a_failure_of_blue() -> None:
    turns = told("random", "SleepAgent")

    decoys = [turn for turn in turns if turn.blue.startswith("Decoy")]
    assert {turn.blue_success for turn in decoys} == {True, False}


def test_green_is_told_only_where_it_plays() -> None:
    with_green = told(trial=Trial(green=True))

    hosts = {turn.green for turn in with_green} - {None}
    assert len(hosts) > 1
    assert all(host.startswith(("User", "Enterprise")) for host in hosts if host)
    assert {turn.green for turn in told()} == {None}


def test_games_on_scenarios_are_recorded_with_what_the_replay_draws() -> None:
    scenarios = (sample("tiny"), sample("flat"), sample("users_plus2"))
    trial = Trial(episodes=3, max_steps=30, scenario=scenarios)
    result = evaluate(load("sleep"), trial)
    games = [game for game in record_games(trial, result.statistics).games if "B_line" in game.red]
    totals = result.statistics["B_lineAgent"].totals[:, :, -1]
    by_name = {scenario.name: number for number, scenario in enumerate(scenarios)}
    assert [game.total for game in games] == [np.median(totals), totals.min()]
    for game in games:
        number = by_name[game.scenario.name]
        assert game.title.endswith(f"game against B_lineAgent on {game.scenario.name}")
        assert game.total in totals[:, number]
        assert sum(turn.reward for turn in game.turns) == pytest.approx(game.total)
        assert len(game.turns[0].access) == len(scenarios[number].hosts)
        assert game.scenario.hash == scenarios[number].hash
        assert game.scenario.foothold == "User0"
        assert game.turns[-1].believed_privileged is None

"""A game told turn by turn."""

import pytest

from cagepool.evaluate import Trial, scripted_defender
from cagepool.evaluate.rollout import episode_totals
from cagepool.evaluate.transcript import Turn, transcript


def told(blue: str = "sleep", red: str = "B_lineAgent", trial: Trial | None = None) -> list[Turn]:
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
    assert game[0] == Turn(
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

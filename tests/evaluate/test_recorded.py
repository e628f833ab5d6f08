"""Games for the replay, and the files of an evaluation."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cagepool.evaluate import Trial, files
from cagepool.evaluate.game_log import recorded_games
from cagepool.evaluate.protocol import Evaluation, evaluate
from cagepool.evaluate.resolve import contender
from cagepool.evaluate.transcript import transcript
from cagepool.sim.names import HOSTS, OFFICIAL_REDS
from tests.evaluate.folders import make_run

TRIAL = Trial(episodes=41, seed=2)


@pytest.fixture(scope="module")
def result() -> Evaluation:
    return evaluate(contender("random"), TRIAL)


@pytest.fixture(scope="module")
def games(result: Evaluation) -> list[dict[str, Any]]:
    recorded = json.loads(json.dumps(recorded_games(TRIAL, result.tallies)))
    assert (recorded["format"], recorded["edition"]) == (1, "2.1")
    assert recorded["hosts"] == [*HOSTS]
    return [*recorded["games"]]


def test_the_typical_and_the_worst_game_against_each_red_are_recorded(
    result: Evaluation, games: list[dict[str, Any]]
) -> None:
    assert [(game["red"], game["title"].split()[0]) for game in games] == [
        (red, title) for red in OFFICIAL_REDS for title in ("typical", "worst")
    ]
    for game in games:
        totals = result.tallies[game["red"]].totals[:, -1]
        chosen = np.median(totals) if game["title"].startswith("typical") else totals.min()
        assert game["total"] == chosen
        assert sum(turn["reward"] for turn in game["turns"]) == pytest.approx(chosen)


def test_games_that_are_all_alike_are_recorded_once() -> None:
    asleep = evaluate(contender("sleep"), TRIAL)

    games = recorded_games(TRIAL, asleep.tallies)["games"]

    assert [game["title"] for game in games if game["red"] == "SleepAgent"] == [
        "typical game against SleepAgent"
    ]


def test_a_recorded_game_goes_as_its_transcript() -> None:
    trial = Trial(episodes=2, seed=9)
    played = evaluate(contender("react-restore"), trial)
    (first, *_) = (
        game
        for game in recorded_games(trial, played.tallies)["games"]
        if game["total"] == played.tallies[game["red"]].totals[0, -1]
    )

    told = transcript(contender("react-restore").defender, trial, first["red"])

    names = ("step", "blue", "blue_success", "red", "red_success", "exploit", "detected", "reward")
    for turn, expected in zip(first["turns"], told, strict=True):
        assert {name: turn[name] for name in names} == {
            name: getattr(expected, name) for name in names
        }


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


def evaluated(folder: Path, **changes: Any) -> Evaluation:
    blue = contender(str(folder))
    return evaluate(blue, Trial(**{"episodes": 10, "edition": blue.edition(), **changes}))


def test_an_evaluation_and_its_games_are_written_and_read(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "one")
    result = evaluated(folder)

    assert files.read(folder) is None
    assert files.write(result, None, is_last=False) == ["evaluation.json", "games.json"]

    read = files.read(folder)
    assert read is not None
    assert (read["name"], read["kind"], read["checkpoint"]) == ("one", "policy", "best-000002")
    assert read["total"]["mean"] == result.table.total.mean  # type: ignore[union-attr]
    games = json.loads((folder / "games.json").read_text())
    assert {game["red"] for game in games["games"]} == {*OFFICIAL_REDS}
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_an_evaluation_of_another_kind_leaves_the_usual_one_alone(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "one")
    usual = evaluated(folder)
    files.write(usual, None, is_last=False)
    before = (folder / "evaluation.json").read_bytes()

    other = evaluated(folder, edition="leaderboard")

    assert files.write(other, None, is_last=False) == ["evaluation-leaderboard.json"]
    assert files.write(usual, None, is_last=True) == ["evaluation-last.json"]
    assert (folder / "evaluation.json").read_bytes() == before


def test_native_scores_stand_beside_those_of_cyborg(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "one")
    native = evaluated(folder, seed=1)
    original = replace(evaluated(folder, seed=2), env="cyborg")

    assert files.write(original, native, is_last=False) == ["evaluation-cyborg.json"]

    read = json.loads((folder / "evaluation-cyborg.json").read_text())
    assert read["native"]["seed"] == 1
    assert read["seed"] == 2
    assert {*read["differences"]["cells"]} == {*OFFICIAL_REDS}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "evaluation.json is damaged"),
        ("[]", "evaluation.json is damaged"),
        ('{"format": "x"}', "evaluation.json is damaged"),
        ('{"format": 99}', "has format 99: a newer cagepool is needed"),
    ],
    ids=["cut", "no object", "no number", "newer"],
)
def test_a_damaged_evaluation_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "evaluation.json").write_text(text)

    with pytest.raises(ValueError, match=sentence):
        files.read(tmp_path)

"""The files of an evaluation in a run folder."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cagepool import runs
from cagepool.evaluate import Trial
from cagepool.evaluate.game_log import record_games
from cagepool.evaluate.protocol import Evaluation, evaluate
from cagepool.policy.load import load
from cagepool.sim.names import OFFICIAL_REDS
from tests.evaluate.folders import make_run


def write(folder: Path, result: Evaluation, *, is_last: bool = False) -> list[str]:
    games = record_games(result.trial, result.statistics)
    return runs.write_evaluation(folder, result.to_file(), games, is_last=is_last)


def evaluated(folder: Path, **changes: Any) -> Evaluation:
    blue = load(str(folder))
    return evaluate(blue, Trial(**{"episodes": 10, "edition": blue.edition, **changes}))


def test_an_evaluation_and_its_games_are_written_and_read(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "one")
    result = evaluated(folder)

    assert runs.open_run(folder).evaluation() is None
    assert write(folder, result) == ["evaluation.json", "games.json"]

    read = runs.open_run(folder).evaluation()
    assert read is not None
    assert (read.name, read.kind, read.checkpoint) == ("one", "policy", "best-000002")
    assert read == result.to_file()
    games = json.loads((folder / "games.json").read_text())
    assert {game["red"] for game in games["games"]} == {*OFFICIAL_REDS}
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_an_evaluation_of_another_kind_leaves_the_usual_one_alone(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "one")
    usual = evaluated(folder)
    write(folder, usual)
    before = (folder / "evaluation.json").read_bytes()

    other = evaluated(folder, edition="leaderboard")
    elsewhere = replace(usual, scenario="cage2/users:test")

    assert write(folder, other) == ["evaluation-leaderboard.json"]
    assert write(folder, elsewhere) == ["evaluation-cage2-users-test.json"]
    assert write(folder, usual, is_last=True) == ["evaluation-last.json"]
    assert (folder / "evaluation.json").read_bytes() == before
    first, *others = runs.open_run(folder).all_evaluations()
    assert first == usual.to_file()
    assert len(others) == 3


def test_native_scores_stand_beside_those_of_cyborg(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "one")
    native = evaluated(folder, seed=1)
    original = replace(evaluated(folder, seed=2), engine="cyborg", native=native.table)

    assert write(folder, original) == ["evaluation-cyborg.json"]

    read = json.loads((folder / "evaluation-cyborg.json").read_text())
    assert read["native"]["total"]["mean"] == native.table.total.mean
    assert read["total"]["mean"] == original.table.total.mean
    assert {*read["differences"]["cells"]} == {*OFFICIAL_REDS}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "evaluation.json is damaged"),
        ("[]", "evaluation.json is damaged"),
        ('{"format": "x"}', "evaluation.json is damaged"),
        ('{"format": 99}', "has format 99, .*: a newer cagepool is needed"),
    ],
    ids=["cut", "no object", "no number", "newer"],
)
def test_a_damaged_evaluation_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    run = runs.open_run(make_run(tmp_path / "one"))
    (run.path / "evaluation.json").write_text(text)

    with pytest.raises(ValueError, match=sentence):
        run.evaluation()

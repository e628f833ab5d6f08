"""Trained policies that come with the package."""

import re

import pytest

import cagepool
from cagepool import runs
from cagepool.evaluate import Trial, protocol
from cagepool.evaluate.statistics import ScoreTable
from cagepool.policy.load import load, load_run, zoo_folder, zoo_names
from cagepool.policy.native import NativeRuntime

MAX_BYTES = 2_000_000


def test_the_zoo_has_the_best_defenders_of_both_editions_and_the_specialists() -> None:
    names = ["zoo:b_line", "zoo:best-2.1", "zoo:best-leaderboard", "zoo:meander", "zoo:minutes"]

    assert zoo_names() == names
    editions = [load(name).edition for name in names]
    assert editions == ["2.1", "2.1", "leaderboard", "2.1", "2.1"]


def test_the_zoo_is_small() -> None:
    folder = zoo_folder("zoo:minutes").parent

    assert sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) < MAX_BYTES


@pytest.mark.parametrize("name", zoo_names())
def test_a_policy_of_the_zoo_scores_what_its_run_says(name: str) -> None:
    policy = load(name)
    evaluation = runs.open_run(zoo_folder(name)).evaluation()
    assert evaluation is not None

    table = protocol.evaluate(policy, Trial(episodes=100, edition=evaluation.edition)).table

    assert (policy.name, policy.run) == (name, None)  # evaluations must not write to the package
    assert policy.checkpoint == evaluation.checkpoint
    assert table.total is not None
    assert evaluation.total is not None
    assert abs(table.total.mean - evaluation.total.mean) < 4 * table.total.standard_error


@pytest.mark.soak
def test_an_evaluation_of_the_zoo_gives_the_same_numbers_again() -> None:
    evaluation = runs.open_run(zoo_folder("zoo:minutes")).evaluation()
    assert evaluation is not None
    trial = Trial(episodes=evaluation.episodes, edition=evaluation.edition, seed=evaluation.seed)

    table: ScoreTable = protocol.evaluate(load("zoo:minutes"), trial).table

    assert table.to_record().scores == evaluation.scores
    assert table.total == evaluation.total


def test_load_takes_a_name_of_the_zoo() -> None:
    by_name, by_folder = (load_run(name) for name in ("zoo:best-2.1", zoo_folder("zoo:best-2.1")))
    assert isinstance(by_name.runtime, NativeRuntime)
    assert isinstance(by_folder.runtime, NativeRuntime)

    for mine, other in zip(by_name.runtime.layers, by_folder.runtime.layers, strict=True):
        assert (mine[0] == other[0]).all()


@pytest.mark.parametrize("find", [load_run, zoo_folder, cagepool.load])
def test_an_unknown_name_is_refused_with_the_nearest(find: object) -> None:
    assert callable(find)
    sentence = f"must be one of {', '.join(zoo_names())}; got 'zoo:minute', did you mean zoo:min"
    with pytest.raises(ValueError, match=re.escape(sentence)):
        find("zoo:minute")

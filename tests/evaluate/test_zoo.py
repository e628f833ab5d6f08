"""Trained policies that come with the package."""

import re
from pathlib import Path

import pytest

import cagepool
from cagepool import runs
from cagepool.evaluate import Trial, protocol, zoo
from cagepool.evaluate.resolve import resolve_policy
from cagepool.evaluate.statistics import ScoreTable

MAX_BYTES = 2_000_000


def test_the_zoo_has_the_best_defenders_of_both_editions_and_the_specialists() -> None:
    names = ["zoo:b_line", "zoo:best-2.1", "zoo:best-leaderboard", "zoo:meander", "zoo:minutes"]

    assert zoo.zoo_names() == names
    editions = [resolve_policy(name).edition() for name in names]
    assert editions == ["2.1", "2.1", "leaderboard", "2.1", "2.1"]


def test_the_zoo_is_small() -> None:
    folder = zoo.zoo_folder("zoo:minutes").parent

    assert sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) < MAX_BYTES


@pytest.mark.parametrize("name", zoo.zoo_names())
def test_a_policy_of_the_zoo_scores_what_its_run_says(name: str) -> None:
    policy = resolve_policy(name)
    evaluation = runs.open_run(zoo.zoo_folder(name)).evaluation()
    assert evaluation is not None

    table = protocol.evaluate(policy, Trial(episodes=100, edition=evaluation.edition)).table

    assert (policy.name, policy.run) == (name, None)  # evaluations must not write to the package
    assert policy.checkpoint == evaluation.checkpoint
    assert table.total is not None
    assert evaluation.total is not None
    assert abs(table.total.mean - evaluation.total.mean) < 4 * table.total.standard_error


@pytest.mark.soak
def test_an_evaluation_of_the_zoo_gives_the_same_numbers_again() -> None:
    evaluation = runs.open_run(zoo.zoo_folder("zoo:minutes")).evaluation()
    assert evaluation is not None
    trial = Trial(episodes=evaluation.episodes, edition=evaluation.edition, seed=evaluation.seed)

    table: ScoreTable = protocol.evaluate(resolve_policy("zoo:minutes"), trial).table

    assert table.to_record().scores == evaluation.scores
    assert table.total == evaluation.total


def test_load_takes_a_name_of_the_zoo() -> None:
    by_name = cagepool.load("zoo:best-2.1")
    by_folder = cagepool.load(zoo.zoo_folder("zoo:best-2.1"))

    for mine, other in zip(by_name.layers, by_folder.layers, strict=True):
        assert (mine[0] == other[0]).all()


@pytest.mark.parametrize("find", [resolve_policy, zoo.zoo_folder, cagepool.load])
def test_an_unknown_name_is_refused_with_the_nearest(find: object) -> None:
    assert callable(find)
    sentence = (
        f"must be one of {', '.join(zoo.zoo_names())}; got 'zoo:minute', did you mean zoo:min"
    )
    with pytest.raises(ValueError, match=re.escape(sentence)):
        find("zoo:minute")


def test_the_folders_of_the_benchmarks_are_those_of_the_zoo() -> None:
    benchmarks = Path(__file__).parents[2] / "benchmarks" / "runs"

    for name in zoo.zoo_names():
        assert (benchmarks / name.removeprefix("zoo:")).resolve() == zoo.zoo_folder(name).resolve()

"""Games of a trial: seeds, lengths, editions."""

import numpy as np
import pytest

from cagepool.evaluate import Trial, rollout, score_table
from cagepool.evaluate.rollout import episode_totals
from cagepool.policy import scripted_defender
from cagepool.policy.defenders import SCRIPTED


@pytest.mark.parametrize("name", SCRIPTED)
def test_totals_do_not_depend_on_how_many_games_are_played_at_once(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = Trial(episodes=20, seed=3)
    together = episode_totals(scripted_defender(name), trial, "RedMeanderAgent")

    monkeypatch.setattr(rollout, "GAMES_AT_ONCE", 7)
    in_parts = episode_totals(scripted_defender(name), trial, "RedMeanderAgent")

    np.testing.assert_array_equal(in_parts, together)


def test_a_longer_trial_starts_with_the_games_of_a_shorter_one() -> None:
    defender = scripted_defender("random")

    few = episode_totals(defender, Trial(episodes=10), "B_lineAgent")
    many = episode_totals(defender, Trial(episodes=25), "B_lineAgent")

    np.testing.assert_array_equal(many[:10], few)


def test_other_seeds_and_other_reds_play_other_games() -> None:
    trial, other = Trial(episodes=50), Trial(episodes=50, seed=1)

    seeds = [
        set(rollout.game_seeds(trial, "B_lineAgent")),
        set(rollout.game_seeds(other, "B_lineAgent")),
        set(rollout.game_seeds(trial, "RedMeanderAgent")),
    ]

    assert len(set.union(*seeds)) == 150


def test_shorter_lengths_are_read_off_the_same_games() -> None:
    defender = scripted_defender("react-restore")

    long = episode_totals(defender, Trial(episodes=20), "B_lineAgent")
    short = episode_totals(defender, Trial(episodes=20, max_steps=30), "B_lineAgent")

    np.testing.assert_array_equal(long[:, :1], short)


@pytest.mark.parametrize(
    ("max_steps", "lengths"),
    [(20, (20,)), (30, (30,)), (50, (30, 50)), (60, (30, 50, 60)), (200, (30, 50, 100, 200))],
)
def test_totals_are_read_at_the_official_lengths_and_at_the_end(
    max_steps: int, lengths: tuple[int, ...]
) -> None:
    trial = Trial(episodes=2, max_steps=max_steps)

    table = score_table(scripted_defender("sleep"), trial, ["sleep"])

    assert tuple(table.scores["SleepAgent"]) == trial.lengths == lengths


def test_the_edition_reaches_the_games() -> None:
    defender = scripted_defender("react-restore")
    today, published = (Trial(episodes=50, edition=name) for name in ("2.1", "leaderboard"))

    totals = [episode_totals(defender, trial, "B_lineAgent") for trial in (today, published)]

    assert (totals[0] != totals[1]).any()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"episodes": 1}, "episodes must be from 2, .* got 1"),
        ({"episodes": 10**9}, "to 10000000, got 1000000000"),
        ({"max_steps": 0}, "max_steps must be from 1 to 65535, got 0"),
        ({"max_steps": 65536}, "max_steps must be from 1 to 65535, got 65536"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
    ],
    ids=["one episode", "too many episodes", "no steps", "too many steps", "negative seed"],
)
def test_a_trial_that_cannot_be_played_is_refused(wrong: dict[str, int], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Trial(**wrong)  # type: ignore[arg-type]


def test_an_unknown_edition_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"edition must be one of 2\.1, leaderboard; got '3'"):
        Trial(edition="3")

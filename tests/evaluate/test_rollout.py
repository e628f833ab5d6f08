"""How games become a table of scores."""

import json

import msgspec
import numpy as np
import pytest

from cagepool.evaluate import Trial, rollout, score_table, scripted_defender
from cagepool.evaluate.defenders import SCRIPTED, GameBatch
from cagepool.evaluate.protocol import official_red_names
from cagepool.evaluate.rollout import OFFICIAL_LENGTHS, episode_totals
from cagepool.evaluate.statistics import mean_score
from cagepool.sim.names import OFFICIAL_REDS, action_index
from cagepool.types import Int64s


class Watcher:
    """Restores User1 when the observation shows an exploit there, as a learned policy might."""

    def begin(self, batch: GameBatch) -> None:
        assert not batch.observations.any()

    def act(self, batch: GameBatch) -> Int64s:
        exploited = batch.observations[:, 4 * 9 + 1] == 1
        return np.where(exploited, action_index("Restore User1"), action_index("Sleep"))


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


def test_a_score_is_the_mean_and_its_standard_error() -> None:
    score = mean_score(np.array([-1.0, -2.0, -6.0]))

    assert (score.mean, score.episodes) == (-3.0, 3)
    assert score.standard_error == pytest.approx(np.sqrt(7 / 3), rel=1e-12)  # rounding


def test_the_total_is_the_sum_of_the_nine_official_cells() -> None:
    table = score_table(scripted_defender("random"), Trial(episodes=50, max_steps=120))

    cells = [table.scores[red][length].mean for red in OFFICIAL_REDS for length in OFFICIAL_LENGTHS]
    assert table.total is not None
    assert table.total.mean == pytest.approx(sum(cells), rel=1e-12)  # rounding of the sums


def test_the_error_of_the_total_counts_lengths_as_dependent_and_reds_as_not() -> None:
    trial = Trial(episodes=5000)
    defender = scripted_defender("random")

    table = score_table(defender, trial)

    sums = [episode_totals(defender, trial, red).sum(axis=1) for red in OFFICIAL_REDS]
    variance = sum(mean_score(of_red).standard_error ** 2 for of_red in sums)
    assert table.total is not None
    # The sample's own correlation of independent games is about 1 / sqrt(5000).
    assert table.total.standard_error == pytest.approx(np.sqrt(variance), rel=0.05)


@pytest.mark.parametrize(
    ("reds", "max_steps"),
    [(["b_line", "meander"], 100), (OFFICIAL_REDS, 50)],
    ids=["red", "length"],
)
def test_there_is_no_total_when_a_cell_is_missing(reds: list[str], max_steps: int) -> None:
    trial = Trial(episodes=2, max_steps=max_steps)

    assert score_table(scripted_defender("sleep"), trial, reds).total is None


def test_a_defender_that_reads_observations_can_be_scored() -> None:
    trial = Trial(episodes=200)

    watched = score_table(Watcher(), trial, ["b_line"]).scores["B_lineAgent"][100]
    asleep = score_table(scripted_defender("sleep"), trial, ["b_line"]).scores["B_lineAgent"][100]

    assert watched.mean > asleep.mean + 4 * np.hypot(watched.standard_error, asleep.standard_error)


def test_the_edition_reaches_the_games() -> None:
    defender = scripted_defender("react-restore")
    today, published = (Trial(episodes=50, edition=name) for name in ("2.1", "leaderboard"))

    totals = [episode_totals(defender, trial, "B_lineAgent") for trial in (today, published)]

    assert (totals[0] != totals[1]).any()


def test_every_game_that_is_over_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout, "GAMES_AT_ONCE", 8)
    told: list[int] = []

    score_table(scripted_defender("sleep"), Trial(episodes=20), ["sleep", "b_line"], told.append)

    assert told == [8, 8, 4, 8, 8, 4]


def test_a_table_says_as_json_what_was_played() -> None:
    table = score_table(
        scripted_defender("sleep"), Trial(episodes=2, edition="leaderboard", seed=5)
    )

    read = json.loads(msgspec.json.encode(table.to_record()))

    assert (read["edition"], read["episodes"], read["seed"]) == ("leaderboard", 2, 5)
    cells = [(cell["red"], cell["length"]) for cell in read["scores"]]
    assert cells == [(red, length) for red in OFFICIAL_REDS for length in OFFICIAL_LENGTHS]
    assert read["total"]["episodes"] == 2


def test_reds_go_by_class_name_or_alias_and_count_once() -> None:
    assert official_red_names(["meander", "B_lineAgent", "b_line"]) == (
        "RedMeanderAgent",
        "B_lineAgent",
    )


@pytest.mark.parametrize(
    ("reds", "got"),
    [
        (["Blue"], "got 'Blue'"),
        (["given"], "got 'given'"),
        (["mix"], "got 'mix'"),
        ([], "got none"),
    ],
    ids=["unknown", "without a will", "no single red", "none"],
)
def test_a_red_that_cannot_be_played_is_refused_with_those_that_can(
    reds: list[str], got: str
) -> None:
    with pytest.raises(ValueError, match=f"B_lineAgent, RedMeanderAgent, SleepAgent .*; {got}"):
        score_table(scripted_defender("sleep"), Trial(episodes=2), reds)


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

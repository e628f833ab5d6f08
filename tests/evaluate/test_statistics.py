"""Scores, loss by cause and use of actions of played games."""

import json
from typing import Any

import msgspec
import numpy as np
import pytest

from cagepool import runs
from cagepool.evaluate import Trial, score_table
from cagepool.evaluate.protocol import Evaluation, evaluate
from cagepool.evaluate.rollout import (
    OFFICIAL_LENGTHS,
    episode_totals,
)
from cagepool.evaluate.statistics import CAUSES, NO_HOST, mean_score
from cagepool.policy import scripted_defender
from cagepool.policy.defenders import SCRIPTED
from cagepool.policy.load import load
from cagepool.sim.names import HOSTS, OFFICIAL_REDS

FEW = Trial(episodes=40, seed=5)


def of(name: str, trial: Trial = FEW) -> Evaluation:
    return evaluate(load(name), trial)


def as_json(evaluation: Evaluation) -> Any:
    return json.loads(runs.to_json(evaluation.to_file()))


def test_a_score_is_the_mean_and_its_standard_error() -> None:
    score = mean_score(np.array([-1.0, -2.0, -6.0]))

    assert (score.mean, score.episodes) == (-3.0, 3)
    assert score.standard_error == pytest.approx(np.sqrt(7 / 3), rel=1e-12)  # rounding


def test_the_total_is_the_sum_of_the_nine_official_cells() -> None:
    table = score_table(scripted_defender("random"), Trial(episodes=50, max_steps=120))

    cells = [table.scores[red][length].mean for red in OFFICIAL_REDS for length in OFFICIAL_LENGTHS]
    assert table.is_official
    assert table.total.mean == pytest.approx(sum(cells), rel=1e-12)  # rounding of the sums


def test_the_error_of_the_total_counts_lengths_as_dependent_and_reds_as_not() -> None:
    trial = Trial(episodes=5000)
    defender = scripted_defender("random")

    table = score_table(defender, trial)

    sums = [episode_totals(defender, trial, red).sum(axis=1) for red in OFFICIAL_REDS]
    variance = sum(mean_score(of_red).standard_error ** 2 for of_red in sums)
    assert table.is_official
    # The sample's own correlation of independent games is about 1 / sqrt(5000).
    assert table.total.standard_error == pytest.approx(np.sqrt(variance), rel=0.05)


@pytest.mark.parametrize(
    ("reds", "max_steps"),
    [(["b_line", "meander"], 100), (OFFICIAL_REDS, 50)],
    ids=["red", "length"],
)
def test_a_total_is_not_official_when_a_cell_is_missing(reds: list[str], max_steps: int) -> None:
    trial = Trial(episodes=2, max_steps=max_steps)

    assert not score_table(scripted_defender("sleep"), trial, reds).is_official


def test_a_table_says_as_json_what_was_played() -> None:
    table = score_table(
        scripted_defender("sleep"), Trial(episodes=2, edition="leaderboard", seed=5)
    )

    read = json.loads(msgspec.json.encode(table.to_record()))

    assert (read["edition"], read["episodes"], read["seed"]) == ("leaderboard", 2, 5)
    cells = [(cell["red"], cell["length"]) for cell in read["scores"]]
    assert cells == [(red, length) for red in OFFICIAL_REDS for length in OFFICIAL_LENGTHS]
    assert read["total"]["episodes"] == 2


@pytest.mark.parametrize("edition", ["2.1", "leaderboard"])
@pytest.mark.parametrize("name", SCRIPTED)
def test_the_parts_of_the_loss_add_up_to_it(name: str, edition: str) -> None:
    result = of(name, Trial(episodes=40, seed=5, edition=edition))

    for red, of_red in result.statistics.items():
        mean = result.table.scores[red][100].mean
        assert sum(of_red.mean_loss().values()) == pytest.approx(
            -mean, abs=1e-9
        )  # rounding of sums


def test_each_part_of_the_loss_is_found_where_it_belongs() -> None:
    # Without a defender B_line holds one user host, Enterprise1 or 0, Enterprise2 and Op_Server0,
    # and stops OTService in the end; nothing is restored.
    asleep = of("sleep").statistics["B_lineAgent"].mean_loss()
    rotating = of("restore-rotation").statistics["SleepAgent"].mean_loss()

    assert tuple(asleep) == CAUSES
    assert 9 < asleep["user_hosts"] < 10
    assert asleep["servers"] > 100
    assert asleep["impact"] > 700
    assert asleep["restores"] == asleep["other"] == 0
    assert rotating == {**dict.fromkeys(CAUSES, 0.0), "restores": 92.0}


def test_the_use_of_actions_is_counted_by_kind_and_host() -> None:
    used = as_json(of("restore-rotation"))["actions"]["SleepAgent"]

    counts = np.array(used["counts"])
    assert used["hosts"] == [*HOSTS, NO_HOST]
    assert counts.shape == (len(used["kinds"]), len(HOSTS) + 1)
    assert counts.sum() == 100
    restores = dict(zip(used["hosts"], counts[used["kinds"].index("Restore")], strict=True))
    assert restores["User0"] == restores[NO_HOST] == 0
    assert restores["Defender"] == 8  # second in every round of 13
    assert counts[used["kinds"].index("Monitor"), -1] == 8

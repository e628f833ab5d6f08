"""Mean total rewards of the scripted defenders, beside those recorded from CybORG."""

import json
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from cagepool.evaluate import Score, Trial, score_table
from cagepool.policy import scripted_defender
from cagepool.policy.defenders import SCRIPTED

RECORDED = Path(__file__).parents[1] / "golden" / "reward_statistics.json"
DEFENDERS = {name.replace("-", "_"): name for name in SCRIPTED}
EPISODES = 10_000


class Match(NamedTuple):
    """Who was recorded playing what."""

    edition: str
    red: str
    blue: str
    green: bool


def recorded_scores() -> dict[Match, dict[int, Score]]:
    recorded = json.loads(RECORDED.read_text())
    matches: dict[Match, dict[int, Score]] = defaultdict(dict)
    for entry in recorded["statistics"] + recorded["extra"]:
        if entry["blue"] in DEFENDERS:
            match = Match(*(entry[field] for field in Match._fields))
            score = Score(entry["mean"], entry["standard_error"], entry["episodes"])
            matches[match][entry["length"]] = score
    return matches


SCORES = recorded_scores()


def test_every_defender_was_recorded_against_every_red() -> None:
    fixed = {"sleep", "random", "react_remove", "react_restore"}
    expected = {
        Match(edition, red, blue, green=False)
        for edition in ("2.1", "leaderboard")
        for red in ("B_line", "Meander", "Sleep")
        for blue in fixed
    }
    rotations = {
        Match("leaderboard", red, "restore_rotation", green=False) for red in ("B_line", "Meander")
    }

    assert expected | rotations <= SCORES.keys()
    assert all(scores.keys() == {30, 50, 100} for scores in SCORES.values())


@pytest.mark.parametrize("match", SCORES, ids=lambda match: "-".join(map(str, match)))
def test_a_mean_is_within_four_standard_errors_of_the_recorded_one(match: Match) -> None:
    trial = Trial(episodes=EPISODES, edition=match.edition, green=match.green, seed=1)

    table = score_table(scripted_defender(DEFENDERS[match.blue]), trial, [match.red.lower()])

    (ours,) = table.scores.values()
    for length, theirs in SCORES[match].items():
        # Four standard errors of the difference; zero, hence equality, where neither side varies.
        error = np.hypot(ours[length].standard_error, theirs.standard_error)
        assert abs(ours[length].mean - theirs.mean) <= 4 * error, f"{length} steps"


@pytest.mark.parametrize("edition", ["2.1", "leaderboard"])
def test_restoring_in_turn_costs_a_sleeping_red_nothing_but_the_restores(edition: str) -> None:
    trial = Trial(episodes=2, edition=edition)

    table = score_table(scripted_defender("restore-rotation"), trial, ["sleep"])

    scores = table.scores["SleepAgent"]
    assert {length: score.mean for length, score in scores.items()} == {30: -27, 50: -46, 100: -92}
    assert all(score.standard_error == 0 for score in scores.values())

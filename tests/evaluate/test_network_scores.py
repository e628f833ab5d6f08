"""Scores over networks, and scripted defenders on other networks."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cagepool.evaluate.defenders import scripted_defender
from cagepool.evaluate.network_scores import (
    NetworkScores,
    network_scores,
    network_seeds,
    playable_reds,
)
from cagepool.evaluate.rollout import Trial
from cagepool.scenarios import CAGE2
from cagepool.sim import Batch, BatchConfig
from tests.scenarios.files import FOLDER, sample

TRACES = FOLDER.parent / "traces_scenarios"
TRIAL = Trial(episodes=4, max_steps=40, scenarios=(CAGE2, sample("users_plus2"), sample("tiny")))


def test_totals_sum_the_means_over_reds_and_lengths() -> None:
    games = {"a": np.array([[[1.0, 2], [3, 4]], [[3, 4], [5, 6]]]), "b": np.zeros((2, 2, 2))}
    scores = NetworkScores("x", ("one", "two"), (30, 50), games)

    assert scores.totals.tolist() == [5, 9]
    assert scores.mean == 7
    assert scores.spread == pytest.approx(8**0.5)
    assert scores.standard_error == pytest.approx(2)
    assert scores.network_errors.tolist() == pytest.approx([2, 2])
    assert scores.to_record().cells["a"] == {30: 3.0, 50: 4.0}


def test_scores_differ_by_standard_errors_of_games() -> None:
    games = np.array([[[0.0]], [[2.0]]])
    own, other = (NetworkScores("x", ("one",), (30,), {"a": games + shift}) for shift in (4, 0))
    assert own.differences(other).tolist() == pytest.approx([4 / 2**0.5])
    assert own.differences(own).tolist() == [0]


def test_a_network_is_scored_the_same_in_any_company() -> None:
    together = network_scores("x", scripted_defender("react-restore"), TRIAL, ["RedMeanderAgent"])
    for number, scenario in enumerate(TRIAL.scenarios):
        alone = network_scores(
            "x",
            scripted_defender("react-restore"),
            replace(TRIAL, scenarios=(scenario,)),
            ["RedMeanderAgent"],
        )
        np.testing.assert_array_equal(
            alone.games["RedMeanderAgent"][:, 0], together.games["RedMeanderAgent"][:, number]
        )


def test_networks_have_seeds_of_their_own() -> None:
    first, second = (network_seeds(TRIAL, "b_line", one) for one in TRIAL.scenarios[:2])
    assert len({*first.tolist(), *second.tolist()}) == 2 * TRIAL.episodes


@pytest.mark.parametrize("name", ["sleep", "random", "react-remove", "restore-rotation"])
def test_every_scripted_defender_plays_other_networks(name: str) -> None:
    scores = network_scores(name, scripted_defender(name), TRIAL, ["B_lineAgent"])
    assert (scores.totals < 0).all()


def test_reds_that_cannot_play_a_network_are_left_out() -> None:
    assert playable_reds([CAGE2]) == ("B_lineAgent", "RedMeanderAgent", "SleepAgent")
    assert playable_reds([CAGE2, sample("entry_user3")]) == ("RedMeanderAgent", "SleepAgent")


def test_a_defender_without_its_actions_is_refused() -> None:
    scenario = replace(CAGE2, action_kinds=("Sleep", "Restore"), name="few")
    batch = Batch(1, BatchConfig(scenario=scenario, autoreset="disabled"))
    with pytest.raises(ValueError, match="react needs Monitor, few has no such action"):
        scripted_defender("react-restore").begin(batch)


@pytest.mark.parametrize("name", ["react-remove", "react-restore"])
@pytest.mark.parametrize("file", ["blind_spots", "red_first", "wide64", "users_plus2"])
def test_a_reacting_defender_plays_other_networks_as_recorded(name: str, file: str) -> None:
    with np.load(TRACES / f"{file}_21.npz") as trace:
        policy = json.loads(str(trace["meta"]))["policy_names"].index(name.replace("-", "_"))
        of_policy = trace["ep_policy"] == policy
        recorded = {
            field: trace[field][of_policy] for field in ("blue_action", "detected", "red_target")
        }
    games, steps = recorded["blue_action"].shape
    batch = Batch(games, BatchConfig(red="given", scenario=sample(file), autoreset="disabled"))
    batch.reset(np.arange(games, dtype=np.uint64))
    defender = scripted_defender(name)
    defender.begin(batch)
    chosen = []
    for step in range(steps):
        chosen.append(defender.act(batch))
        for field in ("detected", "red_target"):
            batch.moves[field] = recorded[field][:, step]

    np.testing.assert_array_equal(np.array(chosen).T, recorded["blue_action"])
    assert len({*recorded["blue_action"].ravel().tolist()}) > 1

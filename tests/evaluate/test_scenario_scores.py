"""Scores over scenarios, and scripted defenders on scenarios other than CAGE-2."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cagepool.evaluate import Trial, evaluate, score_table
from cagepool.evaluate.protocol import playable_reds, scenario_label
from cagepool.evaluate.rollout import NativeEngine, game_seeds
from cagepool.evaluate.statistics import ScoreTable, play_and_count, score_differences
from cagepool.policy.defenders import scripted_defender
from cagepool.policy.load import load
from cagepool.scenarios import CAGE2
from cagepool.sim import Batch, BatchConfig
from tests.scenarios.files import FOLDER, sample

TRACES = FOLDER.parent / "traces_scenarios"
TRIAL = Trial(episodes=4, max_steps=40, scenario=(CAGE2, sample("users_plus2"), sample("tiny")))


def test_the_total_sums_reds_and_lengths_and_its_error_is_over_scenarios() -> None:
    trial = Trial(episodes=2, max_steps=50, scenario=(sample("tiny"), sample("flat")))
    games = {"a": np.array([[[1.0, 2], [3, 4]], [[3, 4], [5, 6]]]), "b": np.zeros((2, 2, 2))}
    table = ScoreTable(trial, games)

    assert [score.mean for score in table.scenario_scores] == [5, 9]
    assert [score.standard_error for score in table.scenario_scores] == pytest.approx([2, 2])
    assert table.total.mean == 7
    assert table.spread == pytest.approx(8**0.5)
    assert table.total.standard_error == pytest.approx(2)
    assert [score.mean for score in table.scores["a"].values()] == [3, 4]
    assert not table.is_official


def test_the_error_of_one_scenario_is_over_games() -> None:
    trial = Trial(episodes=2, max_steps=30, scenario=(sample("tiny"),))
    table = ScoreTable(trial, {"a": np.array([[[0.0]], [[2.0]]])})
    assert table.total.standard_error == pytest.approx(1)
    assert table.spread is None


def test_scores_differ_by_standard_errors_of_games() -> None:
    trial = Trial(episodes=2, max_steps=30, scenario=(sample("tiny"),))
    games = np.array([[[0.0]], [[2.0]]])
    own, other = (ScoreTable(trial, {"a": games + shift}) for shift in (4, 0))
    assert score_differences(own, other).scenarios == pytest.approx([4 / 2**0.5])
    assert score_differences(own, own).scenarios == [0]


def test_a_scenario_is_scored_the_same_in_any_company() -> None:
    defender, red = scripted_defender("react-restore"), "RedMeanderAgent"
    together = play_and_count(defender, TRIAL, red)
    for number, scenario in enumerate(TRIAL.scenarios):
        alone = play_and_count(defender, replace(TRIAL, scenario=(scenario,)), red)
        np.testing.assert_array_equal(alone.totals[:, 0], together.totals[:, number])


class OneByOne:
    """Plays one scenario at a time, as CybORG does."""

    name = "cyborg"
    max_games = 3
    open = NativeEngine().open


def test_an_engine_of_one_scenario_at_a_time_counts_the_same() -> None:
    defender, red = scripted_defender("react-restore"), "RedMeanderAgent"
    together = play_and_count(defender, TRIAL, red)
    one_by_one = play_and_count(defender, TRIAL, red, OneByOne())
    for name in ("totals", "loss_tenths", "action_uses"):
        np.testing.assert_array_equal(getattr(one_by_one, name), getattr(together, name))


def test_scenarios_have_seeds_of_their_own() -> None:
    first, second = (game_seeds(TRIAL, "b_line", one) for one in TRIAL.scenarios[:2])
    assert len({*first.tolist(), *second.tolist()}) == 2 * TRIAL.episodes


@pytest.mark.parametrize("name", ["sleep", "random", "react-remove", "restore-rotation"])
def test_every_scripted_defender_plays_other_scenarios(name: str) -> None:
    table = score_table(scripted_defender(name), TRIAL, ["B_lineAgent"])
    assert all(score.mean < 0 for score in table.scenario_scores)


def test_causes_of_loss_add_up_in_every_scenario() -> None:
    for red, games in evaluate(load("random"), TRIAL).statistics.items():
        mean = games.totals[:, :, -1].mean()
        assert sum(games.mean_loss().values()) == pytest.approx(-mean), red


def test_actions_are_counted_by_the_hosts_of_the_scenario() -> None:
    tiny = sample("tiny")
    trial = Trial(episodes=2, max_steps=20, scenario=(tiny,))
    uses = play_and_count(scripted_defender("random"), trial, "SleepAgent").mean_action_uses()
    assert uses.hosts[:-1] == [*tiny.hosts]
    assert np.sum(uses.counts) == 20


def test_other_scenarios_have_baselines_and_no_published_scores() -> None:
    trial = Trial(episodes=2, max_steps=100, scenario=(sample("users_plus2"),))
    file = evaluate(load("react-restore"), trial, references=True).to_file()
    assert [row.defender for row in file.baselines] == ["react-remove", "sleep"]
    assert (file.official, file.published, file.scenario) == (False, [], "users_plus2")
    assert file.total.standard_error > 0


def test_the_official_protocol_needs_no_baselines() -> None:
    file = evaluate(load("sleep"), Trial(episodes=2), references=True).to_file()
    assert (file.official, file.baselines, file.gap) == (True, [], None)
    assert file.published


def test_reds_that_cannot_play_a_scenario_are_left_out() -> None:
    assert playable_reds([CAGE2]) == ("B_lineAgent", "RedMeanderAgent", "SleepAgent")
    assert playable_reds([CAGE2, sample("entry_user3")]) == ("RedMeanderAgent", "SleepAgent")


def test_a_label_names_no_folder() -> None:
    files = f"{FOLDER / 'tiny.yaml'}, /gone/mine.yaml,cage2/users:test"
    assert scenario_label(files) == "tiny,mine,cage2/users:test"


def test_a_defender_without_its_actions_is_refused() -> None:
    scenario = replace(CAGE2, action_kinds=("Sleep", "Restore"), name="few")
    batch = Batch(1, BatchConfig(scenario=scenario, autoreset="disabled"))
    with pytest.raises(ValueError, match="react needs Monitor, few has no such action"):
        scripted_defender("react-restore").begin(batch)


@pytest.mark.parametrize("name", ["react-remove", "react-restore"])
@pytest.mark.parametrize("file", ["blind_spots", "red_first", "wide64", "users_plus2"])
def test_a_reacting_defender_plays_other_scenarios_as_recorded(name: str, file: str) -> None:
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
        chosen.append(defender.act(batch.observations))
        for field in ("detected", "red_target"):
            batch.moves[field] = recorded[field][:, step]

    np.testing.assert_array_equal(np.array(chosen).T, recorded["blue_action"])
    assert len({*recorded["blue_action"].ravel().tolist()}) > 1

"""The official protocol, and what is counted beside the scores."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from cagepool import runs
from cagepool.evaluate import Trial, score_table, scripted_defender
from cagepool.evaluate.baselines import PUBLISHED
from cagepool.evaluate.defenders import SCRIPTED
from cagepool.evaluate.policy import load
from cagepool.evaluate.protocol import Evaluation, evaluate, score_differences
from cagepool.evaluate.resolve import resolve_policy
from cagepool.evaluate.reward_breakdown import CAUSES
from cagepool.evaluate.rollout import OFFICIAL_LENGTHS, game_seeds, play_steps, start_games
from cagepool.evaluate.statistics import NO_HOST, play_and_count
from cagepool.sim.names import HOSTS, OFFICIAL_REDS, action_name
from tests.evaluate.folders import add_checkpoint, make_run

FEW = Trial(episodes=40, seed=5)


def of(name: str, trial: Trial = FEW) -> Evaluation:
    return evaluate(resolve_policy(name), trial)


def as_json(evaluation: Evaluation) -> Any:
    return json.loads(runs.to_json(evaluation.to_file()))


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


def test_every_reward_is_what_the_arrays_of_the_batch_say() -> None:
    trial = Trial(episodes=30)
    batch = start_games(trial, "RedMeanderAgent", game_seeds(trial, "RedMeanderAgent"))
    costs = {"User": 0.1, "Op_Host": 0.1, "Defender": 0.1, "Enterprise": 1, "Op_Server": 1}
    values = np.array([costs[host.rstrip("0123456789")] for host in HOSTS])
    values[HOSTS.index("User0")] = 0

    for _ in play_steps(scripted_defender("random"), trial, batch):
        expected = (batch.true_state["privileged"] > 0) @ values
        expected += 10 * (batch.true_state["ot_running"] == 0)
        names = [action_name(action) for action in batch.moves["blue_action"]]
        expected += [name.startswith("Restore") for name in names]
        np.testing.assert_allclose(-batch.rewards, expected, atol=1e-9)  # rounding of tenths


def test_scores_are_those_of_the_plain_table() -> None:
    table = score_table(scripted_defender("react-restore"), FEW)

    assert of("react-restore").table == table


def test_counts_do_not_depend_on_how_many_games_are_played_max_games(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trial = Trial(episodes=20, order="balanced")
    together = play_and_count(scripted_defender("random"), trial, "B_lineAgent")

    monkeypatch.setattr("cagepool.evaluate.rollout.NativeEngine.max_games", 7)
    told: list[int] = []
    parts = play_and_count(
        scripted_defender("random"), trial, "B_lineAgent", on_progress=told.append
    )

    assert told == [7, 7, 6]
    for name in ("totals", "privileged_steps", "outage_steps", "action_uses", "counters"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(together, name))


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


def test_an_order_is_kept_by_the_definition_that_is_asked_for() -> None:
    by_host, by_seed = (
        as_json(of("random", Trial(episodes=40, order="user_priority", definition=definition)))[
            "compliance"
        ]["RedMeanderAgent"]
        for definition in ("host", "seed")
    )

    # The older definition takes any fix for a good one while nobody holds anything.
    assert by_seed["compliance"] > by_host["compliance"]


def test_keeping_an_order_is_measured_only_where_there_is_one() -> None:
    without = as_json(of("react-restore"))
    kept = as_json(of("react-restore", Trial(episodes=40, order="reverse")))["compliance"]

    assert without["compliance"] is None
    assert kept["order"] == "reverse"
    assert 0 < kept["RedMeanderAgent"]["compliance"] < 1
    assert kept["RedMeanderAgent"]["wasted_fixes"] == 0
    restores = (
        of("react-restore", Trial(episodes=40))
        .statistics["RedMeanderAgent"]
        .mean_loss()["restores"]
    )
    assert kept["RedMeanderAgent"]["decisions"] == pytest.approx(restores)
    # Nobody attacks, so that nothing is decided: undefined, and no number.
    assert kept["SleepAgent"] == {
        "compliance": None,
        "coverage": None,
        "decisions": 0,
        "wasted_fixes": 0,
    }


def test_an_evaluation_is_told_as_json() -> None:
    read = as_json(of("random"))

    assert (read["format"], read["name"], read["kind"], read["env"]) == (
        *(1, "random", "scripted"),
        "native",
    )
    cells = [(cell["red"], cell["length"]) for cell in read["scores"]]
    assert cells == [(red, length) for red in OFFICIAL_REDS for length in OFFICIAL_LENGTHS]
    assert [row["name"] for row in read["published"]] == ["KEEP", "Cardiff"]
    assert read["published"][0]["cells"]["B_lineAgent"] == {"30": -3.82, "50": -6.71, "100": -14.12}


@pytest.mark.parametrize("edition", PUBLISHED)
def test_published_cells_add_up_to_the_published_total(edition: str) -> None:
    for row in PUBLISHED[edition]:
        cells = [mean for means in row.cells.values() for mean in means.values()]
        # Nine means and a total, each rounded to two decimals.
        assert sum(cells) == pytest.approx(row.total, abs=0.05)
        assert row.source


def test_a_policy_plays_on_the_edition_of_its_training(tmp_path: Path) -> None:
    trained = resolve_policy(str(make_run(tmp_path / "one", edition="leaderboard")))

    assert trained.edition() == "leaderboard"
    assert trained.edition("2.1") == "2.1"
    assert resolve_policy("sleep").edition() == "2.1"


def test_a_policy_is_played_greedily_and_game_by_game(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "one")
    trial = Trial(episodes=5, seed=3)
    totals = play_and_count(resolve_policy(str(folder)).defender, trial, "B_lineAgent").totals

    policy = load(folder)
    for seed, expected in zip(game_seeds(trial, "B_lineAgent"), totals[:, -1], strict=True):
        batch = start_games(trial, "B_lineAgent", np.array([seed]))
        policy.begin(1)
        total = 0.0
        for _ in range(100):
            batch.step(policy.act(batch.observations))
            total += batch.rewards[0]
        assert total == pytest.approx(expected, abs=1e-9)  # rounding of the sum


def test_the_best_policy_is_played_unless_the_last_is_asked_for(tmp_path: Path) -> None:
    folder = str(make_run(tmp_path / "one", kind="last"))
    without_best = resolve_policy(folder)
    add_checkpoint(Path(folder), network=1, kind="best", update=1)

    chosen = [resolve_policy(folder), resolve_policy(folder, "last")]

    assert without_best.checkpoint == "last-000002"
    assert [one.checkpoint for one in chosen] == ["best-000001", "last-000002"]
    totals = [play_and_count(one.defender, FEW, "B_lineAgent").totals for one in chosen]
    assert (totals[0] != totals[1]).any()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("hope", "blue must be one of sleep, .*restore-rotation or a run folder; got 'hope'"),
        (".", r"a run must be a folder with config.json, \. has none"),
    ],
)
def test_who_cannot_play_is_refused(name: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        resolve_policy(name)


def test_a_policy_for_another_game_is_refused(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "pole", env="CartPole-v1")

    with pytest.raises(ValueError, match=r"must be one for CAGE-2, that of .*pole is for another"):
        resolve_policy(str(folder))


def test_settings_that_an_old_folder_lacks_take_their_defaults(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "old")
    expected = resolve_policy(str(folder))
    config = json.loads((folder / "config.json").read_text())
    del config["settings"]["env"]["edition"]
    del config["settings"]["features"]["time_left"]
    del config["settings"]["order"]
    (folder / "config.json").write_text(json.dumps(config))

    found = resolve_policy(str(folder))

    assert replace(found, defender=expected.defender) == expected
    totals = [play_and_count(one.defender, FEW, "B_lineAgent").totals for one in (found, expected)]
    np.testing.assert_array_equal(totals[0], totals[1])


def test_tables_are_compared_in_standard_errors() -> None:
    ours, theirs = (of("random", Trial(episodes=200, seed=seed)).table for seed in (1, 2))
    apart = score_differences(ours, theirs)

    one, other = ours.scores["B_lineAgent"][50], theirs.scores["B_lineAgent"][50]
    error = np.hypot(one.standard_error, other.standard_error)
    assert apart.cells["B_lineAgent"][50] == (one.mean - other.mean) / error
    assert max(abs(x or 0) for row in apart.cells.values() for x in row.values()) < 5
    assert score_differences(ours, ours).total == 0


def test_a_difference_without_any_spread_is_infinite_and_null_in_json() -> None:
    asleep, rotating = (of(name).table for name in ("sleep", "restore-rotation"))
    apart = score_differences(asleep, rotating)

    assert apart.cells["SleepAgent"][30] == np.inf
    assert json.loads(msgspec.json.encode(apart))["cells"]["SleepAgent"]["30"] is None

"""The official protocol: evaluations, score tables and their differences."""

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import ArrayLike

from cagepool import runs
from cagepool.evaluate import Trial, rollout, score_table
from cagepool.evaluate.baselines import PUBLISHED
from cagepool.evaluate.protocol import Evaluation, evaluate, official_red_names
from cagepool.evaluate.rollout import (
    OFFICIAL_LENGTHS,
    game_seeds,
    play_steps,
    start_games,
)
from cagepool.evaluate.statistics import ScoreTable, play_and_count, score_differences
from cagepool.policy import scripted_defender
from cagepool.policy.defenders import Defender
from cagepool.policy.load import load
from cagepool.sim.names import HOSTS, OFFICIAL_REDS, action_index, action_name
from cagepool.types import Int64s
from tests.evaluate.folders import make_run

FEW = Trial(episodes=40, seed=5)


def of(name: str, trial: Trial = FEW) -> Evaluation:
    return evaluate(load(name), trial)


def as_json(evaluation: Evaluation) -> Any:
    return json.loads(runs.to_json(evaluation.to_file()))


def test_every_reward_is_what_the_arrays_of_the_batch_say() -> None:
    trial = Trial(episodes=30)
    batch = start_games(trial, "RedMeanderAgent", game_seeds(trial, "RedMeanderAgent"))
    costs = {"User": 0.1, "Op_Host": 0.1, "Defender": 0.1, "Enterprise": 1, "Op_Server": 1}
    values = np.array([costs[host.rstrip("0123456789")] for host in HOSTS])
    values[HOSTS.index("User0")] = 0

    for _ in play_steps(scripted_defender("random"), trial, batch):
        expected = (batch.true_state["privileged"] > 0) @ values
        expected += 10 * ~batch.true_state["ot_running"].any(axis=1)
        names = [action_name(action) for action in batch.moves["blue_action"]]
        expected += [name.startswith("Restore") for name in names]
        np.testing.assert_allclose(-batch.rewards, expected, atol=1e-9)  # rounding of tenths


def test_scores_are_those_of_the_plain_table() -> None:
    table = score_table(scripted_defender("react-restore"), FEW)

    assert of("react-restore").table.to_record() == table.to_record()


def test_counts_do_not_depend_on_how_many_games_are_played_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trial = Trial(episodes=20, order="balanced")
    together = play_and_count(scripted_defender("random"), trial, "B_lineAgent")

    monkeypatch.setattr("cagepool.evaluate.rollout.NativeEngine.max_games", 7)
    told: list[float] = []
    parts = play_and_count(
        scripted_defender("random"), trial, "B_lineAgent", on_progress=told.append
    )

    assert sum(told) == pytest.approx(20)
    for name in ("totals", "loss_tenths", "action_uses", "counters"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(together, name))


def test_an_order_is_kept_by_the_definition_that_is_asked_for() -> None:
    by_host, by_seed = (
        as_json(of("random", Trial(episodes=40, order="user_priority", definition=definition)))[
            "compliance"
        ]["RedMeanderAgent"]
        for definition in ("host", "fix-type")
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


def test_a_policy_is_played_greedily_and_game_by_game(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "one")
    trial = Trial(episodes=5, seed=3)
    totals = play_and_count(load(str(folder)), trial, "B_lineAgent").totals

    policy = load(folder)
    for seed, expected in zip(game_seeds(trial, "B_lineAgent"), totals[:, 0, -1], strict=True):
        batch = start_games(trial, "B_lineAgent", np.array([seed]))
        policy.begin(1)
        total = 0.0
        for _ in range(100):
            batch.step(policy.act(batch.observations))
            total += batch.rewards[0]
        assert total == pytest.approx(expected, abs=1e-9)  # rounding of the sum


def test_tables_are_compared_in_standard_errors() -> None:
    ours, theirs = (of("random", Trial(episodes=200, seed=seed)).table for seed in (1, 2))
    apart = score_differences(ours, theirs)

    one, other = ours.scores["B_lineAgent"][50], theirs.scores["B_lineAgent"][50]
    error = np.sqrt(2) * other.standard_error  # the deviation is that of the second table
    assert apart.cells["B_lineAgent"][50] == pytest.approx((one.mean - other.mean) / error)
    assert max(abs(x or 0) for row in apart.cells.values() for x in row.values()) < 5
    assert score_differences(ours, ours).total == 0


def test_a_difference_without_any_spread_is_infinite_and_null_in_json() -> None:
    asleep, rotating = (of(name).table for name in ("sleep", "restore-rotation"))
    apart = score_differences(asleep, rotating)

    assert apart.cells["SleepAgent"][30] == np.inf
    assert json.loads(msgspec.json.encode(apart))["cells"]["SleepAgent"]["30"] is None


class Watcher(Defender):
    """Restores User1 when the observation shows an exploit there, as a learned policy might."""

    def act(self, observations: ArrayLike) -> Int64s:
        exploited = np.asarray(observations)[:, 4 * 9 + 1] == 1
        return np.where(exploited, action_index("Restore User1"), action_index("Sleep"))


def test_a_defender_that_reads_observations_can_be_scored() -> None:
    trial = Trial(episodes=200)

    watched = score_table(Watcher(), trial, ["b_line"]).scores["B_lineAgent"][100]
    asleep = score_table(scripted_defender("sleep"), trial, ["b_line"]).scores["B_lineAgent"][100]

    assert watched.mean > asleep.mean + 4 * np.hypot(watched.standard_error, asleep.standard_error)


def test_every_game_that_is_over_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout.NativeEngine, "max_games", 8)
    told: list[float] = []

    score_table(scripted_defender("sleep"), Trial(episodes=20), ["sleep", "b_line"], told.append)

    assert sum(told) == pytest.approx(40)  # rounding of parts of games


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


def test_few_games_of_one_table_are_judged_by_the_deviation_of_the_other() -> None:
    """Three equal scores would make any difference look certain."""
    native = {red: np.tile([[[-10.0] * 3], [[-20.0] * 3]], (500, 1, 1)) for red in OFFICIAL_REDS}
    few = {red: np.full((3, 1, 3), -11.0) for red in OFFICIAL_REDS}
    tables = [
        ScoreTable(Trial(episodes=len(totals[OFFICIAL_REDS[0]])), totals)
        for totals in (few, native)
    ]

    differences = score_differences(*tables)

    expected = 4.0 / (5.0 * np.sqrt(1 / 3 + 1 / 1000))
    for row in differences.cells.values():
        assert [*row.values()] == pytest.approx([expected] * 3, rel=1e-3)


def test_progress_is_reported_within_a_batch_of_games() -> None:
    parts: list[float] = []

    play_and_count(
        scripted_defender("sleep"), Trial(episodes=4), "B_lineAgent", on_progress=parts.append
    )

    assert len(parts) == 100
    assert sum(parts) == pytest.approx(4)

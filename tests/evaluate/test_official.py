"""The official protocol, and what is counted beside the scores."""

import json
from pathlib import Path

import numpy as np
import pytest

from cagepool.evaluate import Trial, score_table, scripted_defender
from cagepool.evaluate.baselines import PUBLISHED
from cagepool.evaluate.defenders import SCRIPTED
from cagepool.evaluate.policy import load
from cagepool.evaluate.protocol import NO_HOST, Evaluation, differences, evaluate
from cagepool.evaluate.resolve import contender
from cagepool.evaluate.reward_breakdown import PARTS
from cagepool.evaluate.rollout import OFFICIAL_LENGTHS, game_seeds, opened, played
from cagepool.evaluate.statistics import tally
from cagepool.sim.names import HOSTS, OFFICIAL_REDS, action_name
from tests.evaluate.folders import add_checkpoint, make_run

FEW = Trial(episodes=40, seed=5)


def of(name: str, trial: Trial = FEW) -> Evaluation:
    return evaluate(contender(name), trial)


@pytest.mark.parametrize("edition", ["2.1", "leaderboard"])
@pytest.mark.parametrize("name", SCRIPTED)
def test_the_parts_of_the_loss_add_up_to_it(name: str, edition: str) -> None:
    result = of(name, Trial(episodes=40, seed=5, edition=edition))

    for red, of_red in result.tallies.items():
        mean = result.table.scores[red][100].mean
        assert sum(of_red.loss().values()) == pytest.approx(-mean, abs=1e-9)  # rounding of sums


def test_each_part_of_the_loss_is_found_where_it_belongs() -> None:
    # Without a defender B_line holds one user host, Enterprise1 or 0, Enterprise2 and Op_Server0,
    # and stops OTService in the end; nothing is restored.
    asleep = of("sleep").tallies["B_lineAgent"].loss()
    rotating = of("restore-rotation").tallies["SleepAgent"].loss()

    assert tuple(asleep) == PARTS
    assert 9 < asleep["user_hosts"] < 10
    assert asleep["servers"] > 100
    assert asleep["impact"] > 700
    assert asleep["restores"] == asleep["other"] == 0
    assert rotating == {**dict.fromkeys(PARTS, 0.0), "restores": 92.0}


def test_every_reward_is_what_the_arrays_of_the_batch_say() -> None:
    trial = Trial(episodes=30)
    batch = opened(trial, "RedMeanderAgent", game_seeds(trial, "RedMeanderAgent"))
    costs = {"User": 0.1, "Op_Host": 0.1, "Defender": 0.1, "Enterprise": 1, "Op_Server": 1}
    values = np.array([costs[host.rstrip("0123456789")] for host in HOSTS])
    values[HOSTS.index("User0")] = 0

    for _ in played(scripted_defender("random"), trial, batch):
        expected = (batch.true_state["privileged"] > 0) @ values
        expected += 10 * (batch.true_state["ot_running"] == 0)
        names = [action_name(action) for action in batch.moves["blue_action"]]
        expected += [name.startswith("Restore") for name in names]
        np.testing.assert_allclose(-batch.rewards, expected, atol=1e-9)  # rounding of tenths


def test_scores_are_those_of_the_plain_table() -> None:
    table = score_table(scripted_defender("react-restore"), FEW)

    assert of("react-restore").table == table


def test_counts_do_not_depend_on_how_many_games_are_played_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trial = Trial(episodes=20, order="balanced")
    together = tally(scripted_defender("random"), trial, "B_lineAgent")

    monkeypatch.setattr("cagepool.evaluate.statistics.NativeEngine.at_once", 7)
    told: list[int] = []
    parts = tally(scripted_defender("random"), trial, "B_lineAgent", on_played=told.append)

    assert told == [7, 7, 6]
    for name in ("totals", "held", "stopped", "uses", "counters"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(together, name))


def test_the_use_of_actions_is_counted_by_kind_and_host() -> None:
    used = of("restore-rotation").as_dict()["actions"]["SleepAgent"]

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
        of("random", Trial(episodes=40, order="user_priority", definition=definition)).as_dict()[
            "compliance"
        ]["RedMeanderAgent"]
        for definition in ("host", "seed")
    )

    # The older definition takes any fix for a good one while nobody holds anything.
    assert by_seed["compliance"] > by_host["compliance"]


def test_keeping_an_order_is_measured_only_where_there_is_one() -> None:
    without = of("react-restore").as_dict()
    kept = of("react-restore", Trial(episodes=40, order="reverse")).as_dict()["compliance"]

    assert without["compliance"] is None
    assert kept["order"] == "reverse"
    assert 0 < kept["RedMeanderAgent"]["compliance"] < 1
    assert kept["RedMeanderAgent"]["wasted_fixes"] == 0
    restores = of("react-restore", Trial(episodes=40)).tallies["RedMeanderAgent"].loss()["restores"]
    assert kept["RedMeanderAgent"]["decisions"] == pytest.approx(restores)
    # Nobody attacks, so that nothing is decided: undefined, and no number.
    assert kept["SleepAgent"] == {
        "compliance": None,
        "coverage": None,
        "decisions": 0,
        "wasted_fixes": 0,
    }


def test_an_evaluation_is_told_as_json() -> None:
    read = json.loads(json.dumps(of("random").as_dict()))

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
        cells = [mean for means in row.cells().values() for mean in means.values()]
        # Nine means and a total, each rounded to two decimals.
        assert sum(cells) == pytest.approx(row.total, abs=0.05)
        assert row.source


def test_a_policy_plays_on_the_edition_of_its_training(tmp_path: Path) -> None:
    trained = contender(str(make_run(tmp_path / "one", edition="leaderboard")))

    assert trained.edition() == "leaderboard"
    assert trained.edition("2.1") == "2.1"
    assert contender("sleep").edition() == "2.1"


def test_a_policy_is_played_greedily_and_game_by_game(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "one")
    trial = Trial(episodes=5, seed=3)
    totals = tally(contender(str(folder)).defender, trial, "B_lineAgent").totals

    policy = load(folder)
    for seed, expected in zip(game_seeds(trial, "B_lineAgent"), totals[:, -1], strict=True):
        batch = opened(trial, "B_lineAgent", np.array([seed]))
        policy.begin(1)
        total = 0.0
        for _ in range(100):
            batch.step(policy.act(batch.observations))
            total += batch.rewards[0]
        assert total == pytest.approx(expected, abs=1e-9)  # rounding of the sum


def test_the_best_policy_is_played_unless_the_last_is_asked_for(tmp_path: Path) -> None:
    folder = str(make_run(tmp_path / "one", kind="last"))
    without_best = contender(folder)
    add_checkpoint(Path(folder), network=1, kind="best", update=1)

    chosen = [contender(folder), contender(folder, "last")]

    assert without_best.checkpoint == "last-000002"
    assert [one.checkpoint for one in chosen] == ["best-000001", "last-000002"]
    totals = [tally(one.defender, FEW, "B_lineAgent").totals for one in chosen]
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
        contender(name)


def test_a_policy_for_another_game_is_refused(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "pole", env="CartPole-v1")

    with pytest.raises(ValueError, match=r"must be one for CAGE-2, that of .*pole is for another"):
        contender(str(folder))


def test_settings_without_what_an_evaluation_needs_are_refused(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "old")
    config = json.loads((folder / "config.json").read_text())
    del config["settings"]["env"]["edition"]
    (folder / "config.json").write_text(json.dumps(config))

    with pytest.raises(ValueError, match="old is damaged: its settings have no 'edition'"):
        contender(str(folder))


def test_tables_are_compared_in_standard_errors() -> None:
    ours, theirs = (of("random", Trial(episodes=200, seed=seed)).table for seed in (1, 2))
    apart = differences(ours, theirs)

    one, other = ours.scores["B_lineAgent"][50], theirs.scores["B_lineAgent"][50]
    error = np.hypot(one.standard_error, other.standard_error)
    assert apart.cells["B_lineAgent"][50] == (one.mean - other.mean) / error
    assert max(abs(x) for row in apart.cells.values() for x in row.values()) < 5
    assert differences(ours, ours).total == 0


def test_a_difference_without_any_spread_is_infinite_and_null_in_json() -> None:
    asleep, rotating = (of(name).table for name in ("sleep", "restore-rotation"))
    apart = differences(asleep, rotating)

    assert apart.cells["SleepAgent"][30] == np.inf
    assert apart.as_dict()["cells"]["SleepAgent"][30] is None

"""Run folders of older versions: those committed in benchmarks, and one kept for these tests.

`old_folder` is a finished run of format 1, with every tenth row of its metrics. It lacks settings
that later versions added, such as `ray_actors`.
"""

import json
import shutil
from pathlib import Path

import pytest

from cagepool import runs
from cagepool.evaluate import Trial
from cagepool.evaluate.game_log import record_games
from cagepool.evaluate.load import load
from cagepool.evaluate.protocol import evaluate
from cagepool.evaluate.resolve import resolve_policy
from cagepool.report import write_report
from cagepool.runs.listing import RunSummary, find_runs, summarize
from cagepool.runs.schema import DecisionRow, OrderRow, flat_settings, nested_settings
from cagepool.train.config import TrainConfig, merge_settings

OLD_FOLDER = Path(__file__).parent / "old_folder"
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
COMMITTED = [OLD_FOLDER, *find_runs(BENCHMARKS / "runs")]


@pytest.fixture
def old_folder(tmp_path: Path) -> Path:
    return shutil.copytree(OLD_FOLDER, tmp_path / "old")


def change_settings(folder: Path, **changes: object) -> None:
    config = json.loads((folder / runs.CONFIG).read_text())
    config["settings"] |= changes
    (folder / runs.CONFIG).write_text(json.dumps(config))


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.name)
def test_a_committed_run_is_read_by_every_reader(path: Path) -> None:
    run = runs.open_run(path)

    assert run.settings["ppo"]["clip_range"] == 0.2
    assert run.settings["env"]["id"] == "cagepool/CAGE2-v0"
    complete = merge_settings(TrainConfig().as_dict(), run.settings)
    assert TrainConfig.from_dict(run.settings).as_dict() == complete
    summary = summarize(path)
    assert isinstance(summary, RunSummary)
    assert summary.is_finished
    evaluation = run.evaluation()
    assert summary.total == (evaluation and evaluation.total)
    if run.checkpoint_updates("best"):
        policy = load(path)
        columns = 52 if policy.layout is None else 4 * len(policy.layout.slots)
        policy.act([0] * columns)


@pytest.mark.parametrize(
    "path", sorted((BENCHMARKS / "search").glob("*.csv")), ids=lambda p: p.name
)
def test_a_committed_table_of_a_search_is_read(path: Path) -> None:
    model: type[DecisionRow | OrderRow] = DecisionRow if "decisions" in path.name else OrderRow
    rows = runs.read_rows(path, model)

    assert len(rows) == len(path.read_text().splitlines()) - 1
    assert all(len(row.order.split(">")) == 5 for row in rows)


def test_an_old_run_is_evaluated_and_reported(old_folder: Path) -> None:
    policy = resolve_policy(str(old_folder))
    before = runs.open_run(old_folder).evaluation()
    result = evaluate(policy, Trial(episodes=10, edition=policy.edition()))
    games = record_games(result.trial, result.statistics)

    runs.write_evaluation(old_folder, result.to_file(), games, is_last=False)
    write_report([old_folder], old_folder / "report.html")

    assert before is not None
    assert before.total is not None
    assert result.table.total is not None
    # Ten games tell the total of a good policy to about 3.
    assert result.table.total.mean == pytest.approx(before.total.mean, abs=15)
    assert runs.open_run(old_folder).evaluation() == result.to_file()
    page = (old_folder / "report.html").read_text()
    assert "typical game against B_lineAgent" in page
    assert "env.red_agent" in page


def test_the_last_policy_of_an_old_run_is_loaded(old_folder: Path) -> None:
    best = runs.open_run(old_folder).checkpoint("best")
    gate = {"best": 0.9, "still": 3, "outcome": None, "reason": ""}
    progress = {"seconds": 1.0, "checked": 0, "best": -6.1, "returns": [], "gate": gate}
    state = {**best.state, "progress": progress, "finished": True}

    runs.open_run(old_folder).save_checkpoint("last", best.arrays, state)

    expected = load(old_folder, "best").layers[0][0]
    assert (load(old_folder, "last").layers[0][0] == expected).all()


@pytest.mark.parametrize(
    ("old_name", "new_name", "value"),
    [
        ("env", "env.id", "CartPole-v1"),
        ("clip", "ppo.clip_range", 0.31),
        ("value_clip", "ppo.clip_range_vf", 0.32),
        ("entropy", "ppo.ent_coef", 0.33),
        ("entropy_end", "ppo.ent_coef_end", 0.34),
        ("epochs", "ppo.n_epochs", 35),
        ("minibatches", "ppo.n_minibatches", 36),
        ("max_gradient_norm", "ppo.max_grad_norm", 0.37),
        ("normalise_advantages", "ppo.normalize_advantage", False),
        ("gate", "order.early_stopping", False),
        ("appraisal_episodes", "order.n_eval_episodes", 38),
        ("checks", "run.n_evals", 39),
        ("check_episodes", "run.n_eval_episodes", 41),
    ],
)
def test_a_renamed_setting_is_read_under_its_new_name(
    old_folder: Path, old_name: str, new_name: str, value: object
) -> None:
    before = flat_settings(runs.open_run(old_folder).settings)
    change_settings(old_folder, **{old_name: value})
    after = flat_settings(runs.open_run(old_folder).settings)

    assert {name for name in after if after[name] != before.get(name)} == {new_name}
    assert after[new_name] == value


@pytest.mark.parametrize("group", TrainConfig().as_dict())
def test_other_settings_keep_their_names(group: str) -> None:
    old_names = json.loads((OLD_FOLDER / runs.CONFIG).read_text())["settings"].keys()
    kept = [name for name in TrainConfig().as_dict()[group] if name in old_names]
    assert kept
    for name in kept:
        assert nested_settings({name: 7}) == {group: {name: 7}}


def test_an_unknown_setting_of_an_old_run_is_refused(old_folder: Path) -> None:
    change_settings(old_folder, colour="red")

    with pytest.raises(ValueError, match=r"config.json: settings must be among .*; got colour"):
        runs.open_run(old_folder)

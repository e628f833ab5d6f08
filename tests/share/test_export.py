"""Exported runs: files, model card, and how they are refused."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from huggingface_hub import ModelCard

import cagepool
from cagepool import runs
from cagepool.cli.main import run
from cagepool.evaluate import Trial
from cagepool.evaluate.rollout import game_seeds, start_games
from cagepool.integrations import CybORGAgent
from cagepool.policy.load import zoo_folder
from cagepool.share.export import ExportOptions, export_run
from tests.cli.command import python
from tests.evaluate.folders import add_checkpoint, make_run
from tests.test_optional import COMMAND, WITHOUT

FILES = {
    "README.md", "checkpoints", "evaluations.csv", "config.json", "evaluation.json", "metrics.csv",
    "policy.onnx", "report.html",
}  # fmt: skip


def make_source(path: Path, **settings: Any) -> Path:
    """A run that can be exported; its table of evaluations lacks what a report needs."""
    (make_run(path, **settings) / runs.EVALUATIONS).unlink()
    return path


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export of a policy of the zoo."""
    folder = tmp_path_factory.mktemp("shared") / "best"
    return export_run("zoo:best-2.1", folder, ExportOptions(license="mit"))


def test_an_export_has_weights_settings_scores_page_onnx_and_card(exported: Path) -> None:
    assert {path.name for path in exported.iterdir()} == FILES
    assert [path.name for path in exported.parent.iterdir()] == ["best"]  # nothing is left over
    source = zoo_folder("zoo:best-2.1")
    assert (exported / "config.json").read_bytes() == (source / "config.json").read_bytes()


def test_an_exported_policy_plays_natively_and_as_an_agent_of_cyborg(exported: Path) -> None:
    original, policy = cagepool.load("zoo:best-2.1"), cagepool.load(exported)
    agent = CybORGAgent(exported)
    trial = Trial(episodes=2)
    batch = start_games(trial, "RedMeanderAgent", game_seeds(trial, "RedMeanderAgent"))
    for each in (original, policy):
        each.begin(2)
    for _ in range(100):
        actions = original.act(batch.observations)
        np.testing.assert_array_equal(policy.act(batch.observations), actions)
        assert agent.get_action(batch.observations[0], 145) == actions[0]
        batch.step(actions)


def test_an_exported_folder_is_evaluated_and_listed_as_a_run(
    exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(exported, folder)

    assert run(["evaluate", str(folder), "--episodes", "20"]) == 0
    assert "written to" in capsys.readouterr().out
    evaluation = runs.open_run(folder).evaluation()
    assert evaluation is not None
    assert evaluation.episodes == 20
    assert run(["runs", str(tmp_path)]) == 0


def test_the_hub_reads_the_official_table_from_the_card(exported: Path) -> None:
    card = ModelCard.load(exported / "README.md")
    evaluation = runs.open_run(exported).evaluation()
    assert evaluation is not None
    assert evaluation.total is not None

    data = card.data
    assert (data.library_name, data.license) == ("cagepool", "mit")
    assert data.pipeline_tag == "reinforcement-learning"
    assert data.model_name == "best"
    results = {result.dataset_config: result for result in data.eval_results}
    assert len(results) == 10
    for cell in evaluation.scores:
        result = results[f"2.1-{cell.red}-{cell.length}"]
        assert (result.task_type, result.metric_type) == ("reinforcement-learning", "mean_reward")
        assert result.metric_value == round(cell.mean, 2)
        assert result.metric_args["episodes"] == cell.episodes >= 1000
    assert results["2.1-total"].metric_value == round(evaluation.total.mean, 2)


def test_the_page_of_the_card_has_the_table_and_code_that_runs(
    exported: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (exported / "README.md").read_text(encoding="utf-8")
    evaluation = runs.open_run(exported).evaluation()
    assert evaluation is not None
    assert evaluation.total is not None
    cell = evaluation.scores[0]

    assert f"| B_lineAgent | {cell.mean:.2f} ± {cell.standard_error:.2f} |" in text
    assert f"**{evaluation.total.mean:.2f} ± {evaluation.total.standard_error:.2f}**" in text
    assert "KEEP: -58.46" in text
    monkeypatch.chdir(exported)
    exec(text.partition("```python\n")[2].partition("```")[0], {})
    assert "mean return per episode" in capsys.readouterr().out


def test_a_policy_that_was_not_evaluated_is_evaluated_by_the_export(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, folder = make_source(tmp_path / "run", belief=True), tmp_path / "shared"

    assert run(["export", str(source), str(folder), "--episodes", "10", "--name", "believer"]) == 0

    assert f"written to {folder}: README.md, checkpoints," in capsys.readouterr().out
    evaluation = runs.open_run(folder).evaluation()
    assert evaluation is not None
    assert (evaluation.episodes, evaluation.checkpoint) == (10, "best-000002")
    assert (folder / "games.json").exists()
    assert runs.open_run(source).evaluation() is None  # the run stays as it is
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert "# believer" in text
    assert "exact belief about red's hidden state" in text


def test_scores_of_an_older_policy_of_the_run_are_not_exported(tmp_path: Path) -> None:
    source = make_source(tmp_path / "run")
    assert run(["evaluate", str(source), "--episodes", "5"]) == 0
    add_checkpoint(source, 1, "best", update=3)

    folder = export_run(source, tmp_path / "shared", ExportOptions(episodes=6))

    evaluation = runs.open_run(folder).evaluation()
    assert evaluation is not None
    assert (evaluation.episodes, evaluation.checkpoint) == (6, "best-000003")


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert run(["export", *map(str, arguments)]) == 2
    return capsys.readouterr().err


def test_wrong_input_is_refused_with_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = make_run(tmp_path / "run")
    full, file = tmp_path / "full", tmp_path / "file"
    full.mkdir()
    (full / "notes.txt").touch()
    file.touch()

    assert refusal(capsys, source, full) == (
        f"cagepool: an export needs an empty folder, {full} is not empty\n"
    )
    assert "must be written to a folder" in refusal(capsys, source, file)
    assert "a run must be a folder with config.json" in refusal(capsys, full, tmp_path / "new")
    assert "did you mean zoo:minutes?" in refusal(capsys, "zoo:minuts", tmp_path / "new")
    last = make_run(tmp_path / "last", kind="last")
    assert "must be of a run with a best policy" in refusal(capsys, last, tmp_path / "new")
    toy = make_run(tmp_path / "toy", env="CartPole-v1", backend="sync")
    assert "must be one for CAGE-2" in refusal(capsys, toy, tmp_path / "new")
    own = make_run(tmp_path / "own")
    config = (own / runs.CONFIG).read_text()
    (own / runs.CONFIG).write_text(config.replace('"mlp"', '"my_networks:Own"'))
    assert "names code to be called" in refusal(capsys, own, tmp_path / "new")
    weights = source / "checkpoints" / "best-000002" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    assert "is damaged" in refusal(capsys, source, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_missing_library_is_named_with_its_extra(tmp_path: Path) -> None:
    program = WITHOUT.format(library="onnx") + COMMAND

    done = python("-c", program, "export", "zoo:minutes", str(tmp_path / "new"))

    assert done.returncode == 2
    remedy = "pip install onnx, or install cagepool with its extra `export`"
    assert done.stderr == f"cagepool: an export needs onnx: {remedy}\n"

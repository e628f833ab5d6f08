"""Run folders of the zoo, by every reader."""

from pathlib import Path

import pytest

from cagepool import runs
from cagepool.policy.load import load, zoo_folder, zoo_names
from cagepool.runs.listing import RunSummary, find_runs, summarize
from cagepool.train.config import TrainConfig, merge_settings

FOLDERS = [zoo_folder(name) for name in zoo_names()]


@pytest.mark.parametrize("path", FOLDERS, ids=lambda path: path.name)
def test_a_committed_run_is_read_by_every_reader(path: Path) -> None:
    run = runs.open_run(path)

    assert [*find_runs(path)] == [path]
    complete = merge_settings(TrainConfig().as_dict(), run.settings)
    assert TrainConfig.from_dict(run.settings).as_dict() == complete
    summary = summarize(path)
    assert isinstance(summary, RunSummary)
    assert summary.is_finished
    evaluation = run.evaluation()
    assert evaluation
    assert summary.total == evaluation.total
    load(path).act([0] * 52)

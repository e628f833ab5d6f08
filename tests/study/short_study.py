"""Studies that take seconds."""

from pathlib import Path
from typing import Any

from cagepool.experiments.folder import Training
from cagepool.experiments.listener import Listener
from cagepool.runs.study_schema import ScoresFile, StudyFile, StudyProtocol
from cagepool.study.config import StudyTraining, list_trainings, make_study
from cagepool.study.study import create_or_open
from cagepool.train.tracking import Row

BASE: Any = {
    "env": {"n_envs": 7, "max_steps": 30},
    "ppo": {"update_steps": 30, "hidden": [8]},
    "run": {"total_episodes": 70, "n_evals": 2, "n_eval_episodes": 2},
}
VARIED: dict[str, list[Any]] = {"features.scan_memory": [True, False]}


def short_study(**protocol: Any) -> StudyFile:
    values: dict[str, Any] = {"seeds": [0, 1], "episodes": 5, "milestones": [50, 100], **protocol}
    return make_study(BASE, StudyProtocol(**values), vary=VARIED)


def created(path: Path, study: StudyFile) -> list[StudyTraining]:
    create_or_open(path, study)
    return list_trainings(path, study)


def numbers(path: Path, study: StudyFile) -> dict[str, Any]:
    """Scores of all runs without the seconds that they took."""
    return {task.name: without_seconds(task.scores()) for task in list_trainings(path, study)}


def without_seconds(scores: ScoresFile) -> Any:
    milestones = [
        {name: getattr(one, name) for name in one.__struct_fields__ if name != "seconds"}
        for one in scores.milestones
    ]
    return milestones, scores.final


class Recorder(Listener):
    """Listener that keeps the names of events."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []
        self.messages: dict[str, str] = {}

    def on_start(self, task: Training) -> None:
        self.events.append(("start", task.name))

    def on_update(self, task: Training, row: Row) -> None:
        assert 0 < row["episodes"] <= task.episodes

    def on_end(self, task: Training) -> None:
        self.events.append(("end", task.name))

    def on_failure(self, task: Training, message: str) -> None:
        self.events.append(("failure", task.name))
        self.messages[task.name] = message

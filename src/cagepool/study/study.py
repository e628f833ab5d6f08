"""Run a study: execute the runs that are not complete, then write the results."""

from collections.abc import Callable
from pathlib import Path

from cagepool.runs.study_schema import ResultsFile, StudyFile
from cagepool.study.executors import StudyExecutor, StudyListener
from cagepool.study.folder import Task, list_tasks, lock_study, task_scores
from cagepool.study.results import write_results


class _FailureRecorder:
    """Passes events on and keeps the messages of failed runs."""

    def __init__(self, listener: StudyListener) -> None:
        self._listener = listener
        self.failures: dict[str, str] = {}

    def on_start(self, task: Task) -> None:
        self._listener.on_start(task)

    def on_episodes(self, task: Task, episodes: int) -> None:
        self._listener.on_episodes(task, episodes)

    def on_end(self, task: Task) -> None:
        self._listener.on_end(task)

    def on_failure(self, task: Task, message: str) -> None:
        self.failures[task.name] = message
        self._listener.on_failure(task, message)


def run_study(
    path: Path,
    study: StudyFile,
    executor: StudyExecutor,
    listener: StudyListener,
    should_stop: Callable[[], bool] = lambda: False,
) -> tuple[bool, ResultsFile]:
    """Run or resume a study.

    A run that fails is reported to the listener and in the results; the others go on. Runs that are
    complete are not played again.

    Args:
        path: Folder of the study.
        study: Its settings.
        executor: Executes the runs.
        listener: Receives the progress.
        should_stop: Asked several times per second.

    Returns:
        Whether all runs are complete, and the results of those that are.

    Raises:
        ValueError: the folder is damaged, or another process runs the study.
    """
    with lock_study(path):
        tasks = list_tasks(path, study)
        open_tasks = [task for task in tasks if not task_scores(task).final]
        recorder = _FailureRecorder(listener)
        executor.execute(open_tasks, recorder, should_stop)
        is_complete = all(task_scores(task).final for task in open_tasks)
        return is_complete, write_results(path, study, recorder.failures)

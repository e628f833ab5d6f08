"""The folder of a study: create or reopen it, lock it, and list its runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cagepool import runs
from cagepool.errors import RunFileError
from cagepool.runs.file_access import create_file, lock_file, open_regular, remove_temporary_files
from cagepool.runs.folder import check_free_space
from cagepool.runs.study_schema import STUDY, ScoresFile, StudyFile
from cagepool.study.config import has_more_seeds, is_same, run_path, training_config
from cagepool.study.run import read_scores


@dataclass(frozen=True)
class Task:
    """One training of a study."""

    setting: str
    seed: int
    path: Path  # of its run folder
    episodes: int  # of the whole training

    @property
    def name(self) -> str:
        """Name in messages."""
        return f"{self.setting}, seed {self.seed}"


def create_or_open(path: Path, study: StudyFile) -> None:
    """Create the folder of a study; one that holds the same study, or fewer seeds, is resumed.

    Raises:
        ValueError: the folder holds something else, or cannot be written.
    """
    existing = read_study_file(path) if (path / STUDY).exists() else None
    if existing is not None:
        if is_same(study, existing):
            return
        if not has_more_seeds(study, existing):
            raise ValueError(
                f"a study needs a folder of its own, {path} holds one with other settings: choose "
                f"another with --out, or resume that one with: cagepool study {path}"
            )
        with lock_study(path):
            runs.write_model(path / STUDY, study)
        return
    try:
        check_free_space(path)
        path.mkdir(parents=True, exist_ok=True)
        if any(not entry.name.startswith(".") for entry in path.iterdir()):
            raise ValueError(
                f"a study needs a folder of its own, {path} is in use: choose another with --out"
            )
        create_file(path / STUDY, (runs.to_json(study) + "\n").encode())
    except FileExistsError:
        raise ValueError(
            f"a study needs a folder of its own, {path} is in use: choose another with --out"
        ) from None
    except OSError as error:
        raise ValueError(
            f"the folder of a study must be writable, {path} is not: {error}"
        ) from error


def read_study_file(path: Path) -> StudyFile:
    """Settings and protocol of the study in a folder.

    Raises:
        ValueError: there is no study, or its file is damaged.
    """
    study = runs.read_if_exists(path / STUDY, StudyFile)
    if study is None:
        raise ValueError(f"a study must be a TOML file or a folder with {STUDY}, {path} is not")
    return study


@contextmanager
def lock_study(path: Path) -> Iterator[None]:
    """Keep other processes from running this study; the lock ends with the process.

    Raises:
        ValueError: another process runs the study.
    """
    with open_regular(path / STUDY) as file:
        try:
            lock_file(file)
        except (BlockingIOError, PermissionError):
            raise ValueError(
                f"a study must be run by one process at a time, {path} is being run"
            ) from None
        remove_temporary_files(path)
        yield


def list_tasks(path: Path, study: StudyFile) -> list[Task]:
    """All trainings of a study; those of one seed follow each other."""
    return [
        Task(
            setting,
            seed,
            path / run_path(study, setting, seed),
            int(settings["run"]["total_episodes"]),
        )
        for seed in study.protocol.seeds
        for setting, settings in study.settings.items()
    ]


def task_scores(task: Task) -> ScoresFile:
    """Scores of a training so far; empty if it has not begun, or if a file is damaged.

    The process of the training names the damage, so that the others go on.
    """
    try:
        return read_scores(runs.open_run(task.path)) if runs.is_run(task.path) else ScoresFile()
    except RunFileError:
        return ScoresFile()


def open_training(path: Path, study: StudyFile, setting: str, seed: int) -> runs.Run:
    """Open or create the run folder of a training.

    Raises:
        ValueError: the folder holds a run with other settings, or cannot be written.
    """
    config = training_config(study, setting, seed)
    folder = path / run_path(study, setting, seed)
    if not runs.is_run(folder):
        return runs.create(folder, config.as_dict(), study.cagepool)
    run = runs.open_run(folder)
    if run.settings != config.as_dict():
        raise ValueError(
            f"{folder} must hold the run of {setting!r} with seed {seed}, it holds another"
        )
    return run

"""The run folder of a training or a search: create it, lock it, write and read its files.

Every file is replaced atomically: a reader never sees a partly written file, and a process that is
killed leaves the old file. Tables (`TableWriter`) grow by rows instead; readers skip an incomplete
last line.
"""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec

from cagepool.errors import RunFileError
from cagepool.runs import schema
from cagepool.runs.file_access import (
    MAX_JSON_BYTES,
    create_file,
    decode_json,
    is_temporary,
    lock_file,
    open_regular,
    read_bytes,
    read_tensors,
    remove_temporary_files,
    replace_file,
    sync_folder,
    to_tensors,
    write_and_sync,
)
from cagepool.runs.schema import (
    CHECKPOINTS,
    CHECKS,
    CHECKS_COLUMNS,
    CONFIG,
    EVALUATION,
    GAMES,
    METRICS,
    METRICS_COLUMNS,
    STATE,
    WEIGHTS,
    WORKFLOW,
)
from cagepool.runs.tables import Columns, read_table
from cagepool.types import Arrays

MIN_FREE_BYTES = 50_000_000  # disk space for the checkpoints, metrics and report of a run
# Names of folders that `save_checkpoint` renames or removes, in this and in older versions.
_UNFINISHED = re.compile(r"\.(?:best|last)(?:-old|-[0-9]{6,15}\.(?:tmp|old))?")
READ_ATTEMPTS = 10  # of a checkpoint that the training replaces in the meantime


class JsonModel(Protocol):
    """A model of a JSON file."""

    FORMAT: ClassVar[int]


Model = TypeVar("Model", bound=JsonModel)


@dataclass(frozen=True)
class Checkpoint:
    """Arrays and state of a training at one update."""

    path: Path
    arrays: Arrays
    state: dict[str, Any]


@dataclass(frozen=True)
class Run:
    """A run folder."""

    path: Path
    settings: schema.Settings

    def metrics(self) -> Columns:
        """Columns of `metrics.csv`, one row per update; nan where a cell is empty.

        Raises:
            RunFileError: the file is damaged.
        """
        return read_table(self.path / METRICS, METRICS_COLUMNS, required=("update", "episodes"))

    def checks(self) -> Columns:
        """Columns of `checks.csv`, one row per evaluation on other seeds during training.

        Raises:
            RunFileError: the file is damaged.
        """
        return read_table(self.path / CHECKS, CHECKS_COLUMNS, required=("update",))

    def evaluation(self) -> schema.EvaluationFile | None:
        """The evaluation of the best policy; none: not evaluated yet.

        Raises:
            RunFileError: the file is damaged or has a newer format.
        """
        return read_if_exists(self.path / EVALUATION, schema.EvaluationFile)

    def games(self) -> schema.GamesFile | None:
        """The recorded games of the evaluation; none: not evaluated yet.

        Raises:
            RunFileError: the file is damaged or has a newer format.
        """
        return read_if_exists(self.path / GAMES, schema.GamesFile)

    def workflow(self) -> schema.WorkflowFile | None:
        """The result of training to an order; none: there is no order, or training has not ended.

        Raises:
            RunFileError: the file is damaged or has a newer format.
        """
        return read_if_exists(self.path / WORKFLOW, schema.WorkflowFile)

    def checkpoint_updates(self, kind: str) -> list[int]:
        """Updates of the checkpoints of a kind, `best` or `last`, in ascending order."""
        folder = self.path / CHECKPOINTS
        if folder.is_symlink() or not folder.is_dir():
            return []
        names = (re.fullmatch(rf"{kind}-([0-9]{{6,15}})", path.name) for path in folder.iterdir())
        return sorted(int(name[1]) for name in names if name)

    def checkpoint(self, kind: str = "best") -> Checkpoint:
        """The newest checkpoint of a kind, `best` or `last`.

        Raises:
            ValueError: there is none, or it is damaged.
        """
        for _ in range(READ_ATTEMPTS):
            updates = self.checkpoint_updates(kind)
            if not updates:
                break
            try:
                return read_checkpoint(_checkpoint_folder(self.path, kind, updates[-1]))
            except RunFileError:
                if self.checkpoint_updates(kind)[-1:] == updates[-1:]:  # not a newer one by now
                    raise
        raise ValueError(f"a run must have a checkpoint {kind!r}, {self.path} has none")

    def save_checkpoint(self, kind: str, arrays: Arrays, state: Mapping[str, Any]) -> None:
        """Replace the checkpoints of a kind by a new one, atomically.

        Args:
            kind: `best` or `last`.
            arrays: Weights, and arrays of the trainer's state.
            state: Plain values fit for JSON, among them `update`, the number of the update.

        Raises:
            OSError: a file cannot be written; the older checkpoints are still there.
        """
        target = _checkpoint_folder(self.path, kind, state["update"])
        fresh, old = (target.with_name(f".{target.name}.{suffix}") for suffix in ("tmp", "old"))
        _remove_folders(fresh, old)  # left behind by a killed process
        try:
            fresh.mkdir(parents=True)
            weights = to_tensors(arrays)
            write_and_sync(fresh / WEIGHTS, weights)
            header = {
                "format": schema.CheckpointFile.FORMAT,
                "sha256": hashlib.sha256(weights).hexdigest(),
            }
            write_and_sync(fresh / STATE, json.dumps({**header, **state}, indent=1).encode())
            sync_folder(fresh)
            if target.exists():
                target.rename(old)
            fresh.rename(target)
            sync_folder(target.parent)
        finally:
            _remove_folders(fresh)
        others = (update for update in self.checkpoint_updates(kind) if update != state["update"])
        _remove_folders(old, *(_checkpoint_folder(self.path, kind, update) for update in others))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from training this run; the lock ends with the process.

        Removes the temporary files of a process that was killed.

        Raises:
            ValueError: another process holds the lock.
        """
        with open_regular(self.path / CONFIG) as file:
            try:
                lock_file(file)
            except (BlockingIOError, PermissionError):
                raise ValueError(
                    f"a run must be trained by one process at a time, {self.path} is being trained"
                ) from None
            self._check_checkpoints_folder()
            remove_temporary_files(self.path)
            self._recover_checkpoints()
            yield

    def discard_if_unused(self) -> None:
        """Remove the folder if it holds nothing but `config.json` and no process trains it."""
        with suppress(ValueError), self.lock():
            if [path.name for path in self.path.iterdir()] == [CONFIG]:
                _remove_folders(self.path)

    def _recover_checkpoints(self) -> None:
        """Finish or undo what a killed process did in `save_checkpoint`."""
        folder = self.path / CHECKPOINTS
        for path in [*folder.iterdir()] if folder.is_dir() else ():
            if not _UNFINISHED.fullmatch(path.name):
                continue
            target = path.with_name(path.stem.removeprefix("."))
            if path.suffix == ".old" and not target.exists():
                path.rename(target)
            else:
                _remove_folders(path)
        for kind in ("best", "last"):
            older = self.checkpoint_updates(kind)[:-1]
            _remove_folders(*(_checkpoint_folder(self.path, kind, update) for update in older))

    def _check_checkpoints_folder(self) -> None:
        """Raise unless checkpoints are written to this run folder, not where a link leads."""
        folder = self.path / CHECKPOINTS
        if folder.is_symlink():
            raise RunFileError(f"{folder} must be a folder, it is a link")


def create(path: Path, settings: schema.Settings, version: str, *, numbered: bool = False) -> Run:
    """Create a run folder; of several processes that create the same one, one succeeds.

    Args:
        path: Of the folder, which must not exist or be empty.
        settings: By group and name.
        version: Of this package.
        numbered: Whether to take another name, such as `path-2`, if the folder is in use.

    Raises:
        ValueError: the folder is in use, it cannot be written, or the disk is almost full.
    """
    content = to_json(schema.ConfigFile(cagepool=version, settings=settings)) + "\n"
    for number in count(1):
        folder = path if number == 1 else path.with_name(f"{path.name}-{number}")
        try:
            _create_config(folder, content.encode())
        except FileExistsError:
            if numbered:
                continue
            raise ValueError(
                f"a run needs a folder of its own, {folder} is in use: choose another with --out, "
                "or resume the run with --resume"
            ) from None
        except OSError as error:
            raise ValueError(f"a run folder must be writable, {folder} is not: {error}") from error
        break
    return Run(folder, settings)


def _create_config(folder: Path, content: bytes) -> None:
    """Create a folder with its `config.json`; leftovers of killed processes are no hindrance.

    Raises:
        FileExistsError: the folder is in use.
    """
    check_free_space(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if not all(is_temporary(path.name) for path in folder.iterdir()):
        raise FileExistsError(errno.EEXIST, "the folder is not empty", str(folder))
    create_file(folder / CONFIG, content)
    remove_temporary_files(folder)


def open_run(path: str | Path) -> Run:
    """Open an existing run folder.

    Raises:
        ValueError: it is not a run folder, or damaged, or has a newer format.
    """
    folder = Path(path)
    if not is_run(folder):
        raise ValueError(f"a run must be a folder with {CONFIG}, {folder} has none")
    return Run(folder, read_settings(folder / CONFIG))


def read_settings(path: Path, *, follow_link: bool = False) -> schema.Settings:
    """Read the settings in a `config.json`, by group and name; format 1 is converted.

    A setting that is newer than the folder is missing: it takes its default where it is used.

    Raises:
        RunFileError: the file is damaged, has a newer format, or an unknown setting of format 1.
    """
    content = read_bytes(path, MAX_JSON_BYTES, follow_link=follow_link)
    if decode_json(path, content, _Header).format > 1:
        return _decode_model(path, content, schema.ConfigFile).settings
    flat = _decode_model(path, content, schema.FlatConfigFile).settings
    try:
        return schema.nested_settings(flat)
    except ValueError as error:
        raise RunFileError(f"{path}: {error}") from None


def is_run(path: Path) -> bool:
    """Whether a folder is a run folder, intact or damaged."""
    return os.path.lexists(path / CONFIG)


def check_free_space(path: Path) -> None:
    """Raise ValueError unless the disk of a folder, which may not exist yet, has room for a run."""
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    if free < MIN_FREE_BYTES:
        raise ValueError(
            f"a run needs {MIN_FREE_BYTES // 10**6} MB of free disk space, "
            f"there are {free // 10**6} MB at {path}"
        )


def write_evaluation(
    folder: Path,
    evaluation: schema.EvaluationFile,
    games: schema.GamesFile | None,
    *,
    is_last: bool,
) -> list[str]:
    """Write `evaluation.json` and `games.json` into a run folder.

    Both describe the best policy, played natively in the edition of its training. An evaluation in
    another engine, in another edition or of the last policy is written without its games to a file
    of its own, such as `evaluation-cyborg.json`.

    Args:
        folder: Of the run.
        evaluation: Scores of a policy of the run.
        games: Recorded games of the evaluation; none: not recorded.
        is_last: Whether the last policy was asked for instead of the best.

    Returns:
        Names of the files.

    Raises:
        ValueError: the folder cannot be written.
    """
    variants = {
        evaluation.env: evaluation.env != "native",
        evaluation.edition: evaluation.edition != evaluation.trained_on,
        "last": is_last,
    }
    suffixes = [name for name, applies in variants.items() if applies]
    name = "-".join([Path(EVALUATION).stem, *suffixes]) + ".json"
    try:
        write_model(folder / name, evaluation)
        if suffixes or games is None:
            return [name]
        write_model(folder / GAMES, games, indent=None)
    except OSError as error:
        raise ValueError(f"a run folder must be writable, {folder} is not: {error}") from error
    return [name, GAMES]


def write_scenario_evaluation(
    folder: Path, evaluation: schema.ScenarioEvaluationFile, *, is_last: bool
) -> str:
    """Write the scores on other networks into a run folder; returns the name of the file.

    The name is made of that of the scenarios, and of what differs from the usual evaluation.

    Raises:
        ValueError: the folder cannot be written.
    """
    variants = {evaluation.env: evaluation.env != "native", "last": is_last}
    words = re.sub(r"[^A-Za-z0-9_.]+", "-", evaluation.scenario).strip("-.")[:80]
    suffixes = [name for name, applies in variants.items() if applies]
    name = "-".join(["scenarios", words, *suffixes]) + ".json"
    try:
        write_model(folder / name, evaluation)
    except OSError as error:
        raise ValueError(f"a run folder must be writable, {folder} is not: {error}") from error
    return name


def write_games(folder: Path, games: schema.GamesFile) -> str:
    """Write recorded games into a run folder; returns the name of the file.

    Raises:
        ValueError: the folder cannot be written.
    """
    try:
        write_model(folder / GAMES, games, indent=None)
    except OSError as error:
        raise ValueError(f"a run folder must be writable, {folder} is not: {error}") from error
    return GAMES


def write_workflow(folder: Path, workflow: schema.WorkflowFile) -> None:
    """Write `workflow.json`, the result of training to an order, into a run folder."""
    write_model(folder / WORKFLOW, workflow)


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read the folder of a checkpoint.

    Raises:
        RunFileError: it is damaged or has a newer format.
    """
    for path in (folder, folder.parent):
        if path.is_symlink():
            raise RunFileError(f"{path} must be a folder, it is a link")
    content = read_bytes(folder / STATE, MAX_JSON_BYTES)
    header = _decode_model(folder / STATE, content, schema.CheckpointFile)
    state = decode_json(folder / STATE, content, dict[str, Any])
    return Checkpoint(folder, read_tensors(folder / WEIGHTS, header.sha256), state)


def to_json(model: JsonModel, indent: int | None = 1) -> str:
    """The content of a JSON file of a run folder."""
    content = {"format": model.FORMAT, **msgspec.to_builtins(model, str_keys=True)}
    encoded = msgspec.json.encode(content)
    return (encoded if indent is None else msgspec.json.format(encoded, indent=indent)).decode()


def write_model(path: Path, model: JsonModel, indent: int | None = 1) -> None:
    """Write a JSON file, atomically."""
    replace_file(path, (to_json(model, indent) + "\n").encode())


def read_if_exists(path: Path, model: type[Model]) -> Model | None:
    """Read a JSON file; none: there is no such file.

    Raises:
        RunFileError: the file is damaged or has a newer format.
    """
    if not os.path.lexists(path):
        return None
    return _decode_model(path, read_bytes(path, MAX_JSON_BYTES), model)


class _Header(msgspec.Struct):
    format: int


def _decode_model(path: Path, content: bytes, model: type[Model]) -> Model:
    number = decode_json(path, content, _Header).format
    if number > model.FORMAT:
        raise RunFileError(
            f"{path} has format {number}, this cagepool reads up to {model.FORMAT}: "
            "a newer cagepool is needed"
        )
    return decode_json(path, content, model)


def _checkpoint_folder(path: Path, kind: str, update: int) -> Path:
    return path / CHECKPOINTS / f"{kind}-{update:06d}"


def _remove_folders(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)

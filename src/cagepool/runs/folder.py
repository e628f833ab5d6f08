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
from typing import Any, TypeVar

import msgspec

from cagepool.errors import RunFileError
from cagepool.runs import schema
from cagepool.runs.file_access import (
    MAX_JSON_BYTES,
    Columns,
    create_file,
    decode_json,
    is_temporary,
    lock_file,
    open_regular,
    read_bytes,
    read_table,
    read_tensors,
    remove_temporary_files,
    replace_file,
    sync_folder,
    to_tensors,
    write_and_sync,
)
from cagepool.runs.schema import (
    CHECKPOINTS,
    CONFIG,
    EVALUATION,
    EVALUATIONS,
    FORMAT,
    GAMES,
    METRICS,
    STATE,
    WEIGHTS,
    WORKFLOW,
)
from cagepool.types import Arrays

MIN_FREE_BYTES = 50_000_000  # disk space for the checkpoints, metrics and report of a run
# Names of folders that `save_checkpoint` renames or removes.
_UNFINISHED = re.compile(r"\.(?:best|last)-[0-9]{6,15}\.(?:tmp|old)")
READ_ATTEMPTS = 10  # of a checkpoint that the training replaces in the meantime


Model = TypeVar("Model", bound=msgspec.Struct)


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
        return read_table(self.path / METRICS, ("update", "episodes"))

    def evaluations(self) -> Columns:
        """Columns of `evaluations.csv`, one row per evaluation on other seeds during training.

        Raises:
            RunFileError: the file is damaged.
        """
        return read_table(self.path / EVALUATIONS, ("update",))

    def evaluation(self) -> schema.EvaluationFile | None:
        """The evaluation of the best policy; none: not evaluated yet.

        Raises:
            RunFileError: the file is damaged or has a newer format.
        """
        return read_if_exists(self.path / EVALUATION, schema.EvaluationFile)

    def all_evaluations(self) -> list[schema.EvaluationFile]:
        """Every evaluation of a policy of the run, that of the best policy first.

        Raises:
            RunFileError: a file is damaged or has a newer format.
        """
        names = sorted(self.path.glob(f"{Path(EVALUATION).stem}*.json"), key=lambda path: path.stem)
        read = (read_if_exists(path, schema.EvaluationFile) for path in names)
        return [evaluation for evaluation in read if evaluation]

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
        """Replace the checkpoints of a kind, `best` or `last`, by a new one, atomically.

        `state` has plain values fit for JSON, among them the number of the `update`.

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
            header = {"format": FORMAT, "sha256": hashlib.sha256(weights).hexdigest()}
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
        """Keep other processes from training this run, see `lock_folder`."""
        with lock_folder(self.path, CONFIG):
            self._check_checkpoints_folder()
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

    The folder must not exist or be empty; if `numbered`, another name, such as `path-2`, is taken.

    Raises:
        ValueError: the folder is in use, it cannot be written, or the disk is almost full.
    """
    content = to_json(schema.ConfigFile(cagepool=version, settings=settings)) + "\n"
    for number in count(1):
        folder = path if number == 1 else path.with_name(f"{path.name}-{number}")
        try:
            create_folder(folder, CONFIG, content.encode())
        except FileExistsError:
            if numbered:
                continue
            raise ValueError(
                f"a run needs a folder of its own, {folder} is in use: choose another with --out, "
                "or resume the run with --resume"
            ) from None
        break
    return Run(folder, settings)


def create_folder(folder: Path, name: str, content: bytes) -> None:
    """Create a folder with its first file; leftovers of killed processes are no hindrance."""
    try:
        check_free_space(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if not all(is_temporary(path.name) for path in folder.iterdir()):
            raise FileExistsError(errno.EEXIST, "the folder is not empty", str(folder))
        create_file(folder / name, content)
    except FileExistsError:
        raise
    except OSError as error:
        raise ValueError(f"a run folder must be writable, {folder} is not: {error}") from error
    remove_temporary_files(folder)


@contextmanager
def lock_folder(folder: Path, name: str) -> Iterator[None]:
    """Lock a folder by one of its files; the lock ends with the process.

    Removes the temporary files of a process that was killed.
    """
    with open_regular(folder / name) as file:
        try:
            lock_file(file)
        except (BlockingIOError, PermissionError):
            raise ValueError(
                f"a folder must be trained by one process at a time, {folder} is being trained"
            ) from None
        remove_temporary_files(folder)
        yield


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
    """Read the settings in a `config.json`, by group and name.

    Raises:
        RunFileError: the file is damaged or has a newer format.
    """
    content = read_bytes(path, MAX_JSON_BYTES, follow_link=follow_link)
    return _decode_model(path, content, schema.ConfigFile).settings


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
    """Write `evaluation.json` and `games.json` into a run folder; returns their names.

    Both describe the best policy, played natively in the edition and on the scenarios of its
    training. Another evaluation is written without its games to a file of its own, such as
    `evaluation-cyborg.json`.
    """
    words = re.sub(r"[^A-Za-z0-9_.]+", "-", evaluation.scenario).strip("-.")[:80]
    variants = {
        words: evaluation.scenario != evaluation.trained_scenario,
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


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read the folder of a checkpoint."""
    for path in (folder, folder.parent):
        if path.is_symlink():
            raise RunFileError(f"{path} must be a folder, it is a link")
    content = read_bytes(folder / STATE, MAX_JSON_BYTES)
    header = _decode_model(folder / STATE, content, schema.CheckpointFile)
    state = decode_json(folder / STATE, content, dict[str, Any])
    return Checkpoint(folder, read_tensors(folder / WEIGHTS, header.sha256), state)


def to_json(model: msgspec.Struct, indent: int | None = 1) -> str:
    """The content of a JSON file of a run folder."""
    content = {"format": FORMAT, **msgspec.to_builtins(model, str_keys=True)}
    encoded = msgspec.json.encode(content)
    return (encoded if indent is None else msgspec.json.format(encoded, indent=indent)).decode()


def write_model(path: Path, model: msgspec.Struct, indent: int | None = 1) -> None:
    """Write a JSON file, atomically."""
    replace_file(path, (to_json(model, indent) + "\n").encode())


def read_if_exists(path: Path, model: type[Model]) -> Model | None:
    """Read a JSON file; none: there is no such file."""
    if not os.path.lexists(path):
        return None
    return _decode_model(path, read_bytes(path, MAX_JSON_BYTES), model)


class _Header(msgspec.Struct):
    format: int


def _decode_model(path: Path, content: bytes, model: type[Model]) -> Model:
    number = decode_json(path, content, _Header).format
    if number > FORMAT:
        raise RunFileError(
            f"{path} has format {number}, this cagepool reads up to {FORMAT}: "
            "a newer cagepool is needed"
        )
    return decode_json(path, content, model)


def _checkpoint_folder(path: Path, kind: str, update: int) -> Path:
    return path / CHECKPOINTS / f"{kind}-{update:06d}"


def _remove_folders(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)

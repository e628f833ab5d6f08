"""The run folder of a training or a search: create it, lock it, write and read its files.

Every file is replaced atomically: a reader never sees a partly written file, and a process that is
killed leaves the old file. Tables (`TableWriter`) grow by rows instead; readers skip an incomplete
last line.
"""

import csv
import hashlib
import io
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar, Protocol, TypeAlias, TypeVar

import msgspec
import numpy as np

from cagepool.runs import schema
from cagepool.runs.schema import (
    CHECKPOINTS,
    CHECKS,
    CONFIG,
    EVALUATION,
    GAMES,
    METRICS,
    STATE,
    WEIGHTS,
    WORKFLOW,
)
from cagepool.types import Arrays

MIN_FREE_BYTES = 50_000_000  # disk space for the checkpoints, metrics and report of a run
LOCKED_BYTE = 2**30  # on Windows: beyond the end of the file, whose bytes others must still read

Columns: TypeAlias = dict[str, list[float]]


class JsonModel(Protocol):
    """A model of a JSON file."""

    FORMAT: ClassVar[int]


Model = TypeVar("Model", bound=JsonModel)
Row = TypeVar("Row", bound=msgspec.Struct)
Decoded = TypeVar("Decoded")


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
        """Columns of `metrics.csv`, one row per update; nan where a cell is empty."""
        return read_table(self.path / METRICS)

    def checks(self) -> Columns:
        """Columns of `checks.csv`, one row per evaluation on other seeds during training."""
        return read_table(self.path / CHECKS)

    def evaluation(self) -> schema.EvaluationFile | None:
        """The evaluation of the best policy; none: not evaluated yet.

        Raises:
            ValueError: the file is damaged or has a newer format.
        """
        return _read_if_exists(self.path / EVALUATION, schema.EvaluationFile)

    def games(self) -> schema.GamesFile | None:
        """The recorded games of the evaluation; none: not evaluated yet.

        Raises:
            ValueError: the file is damaged or has a newer format.
        """
        return _read_if_exists(self.path / GAMES, schema.GamesFile)

    def workflow(self) -> schema.WorkflowFile | None:
        """The result of training to an order; none: there is no order, or training has not ended.

        Raises:
            ValueError: the file is damaged or has a newer format.
        """
        return _read_if_exists(self.path / WORKFLOW, schema.WorkflowFile)

    def checkpoint_updates(self, kind: str) -> list[int]:
        """Updates of the checkpoints of a kind, `best` or `last`, in ascending order."""
        names = (path.name for path in (self.path / CHECKPOINTS).glob(f"{kind}-*"))
        numbers = (name.removeprefix(f"{kind}-") for name in names)
        return sorted(int(number) for number in numbers if number.isdecimal())

    def checkpoint(self, kind: str = "best") -> Checkpoint:
        """The newest checkpoint of a kind, `best` or `last`.

        Raises:
            ValueError: there is none, or it is damaged.
        """
        updates = self.checkpoint_updates(kind)
        if not updates:
            raise ValueError(f"a run must have a checkpoint {kind!r}, {self.path} has none")
        return read_checkpoint(_checkpoint_folder(self.path, kind, updates[-1]))

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
        fresh = target.with_name(f".{kind}")
        old = target.with_name(f".{kind}-old")
        _remove_folders(fresh, old)  # left behind by a killed process
        try:
            fresh.mkdir(parents=True)
            weights = _to_safetensors(arrays)
            _write_and_sync(fresh / WEIGHTS, weights)
            header = {
                "format": schema.CheckpointFile.FORMAT,
                "sha256": hashlib.sha256(weights).hexdigest(),
            }
            _write_and_sync(fresh / STATE, json.dumps({**header, **state}, indent=1).encode())
            if target.exists():
                target.rename(old)
            fresh.rename(target)
        finally:
            _remove_folders(fresh)
        others = (update for update in self.checkpoint_updates(kind) if update != state["update"])
        _remove_folders(old, *(_checkpoint_folder(self.path, kind, update) for update in others))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from training this run; the lock ends with the process.

        Raises:
            ValueError: another process holds the lock.
        """
        with (self.path / CONFIG).open("rb") as file:
            try:
                _lock_file(file)
            except (BlockingIOError, PermissionError):
                raise ValueError(
                    f"a run must be trained by one process at a time, {self.path} is being trained"
                ) from None
            yield

    def discard_if_unused(self) -> None:
        """Remove the folder if it holds nothing but `config.json`."""
        if [path.name for path in self.path.iterdir()] == [CONFIG]:
            _remove_folders(self.path)


def create(path: Path, settings: schema.Settings, version: str) -> Run:
    """Create a run folder.

    Raises:
        ValueError: the folder is not empty, or it cannot be written.
    """
    try:
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise ValueError(
                f"a run needs a folder of its own, {path} is in use: choose another with --out, "
                "or resume the run with --resume"
            )
        path.mkdir(parents=True, exist_ok=True)
        check_writable(path)
        _write_model(path / CONFIG, schema.ConfigFile(cagepool=version, settings=settings))
    except OSError as error:
        raise ValueError(f"a run folder must be writable, {path} is not: {error}") from error
    return Run(path, settings)


def open_run(path: str | Path) -> Run:
    """Open an existing run folder.

    Raises:
        ValueError: it is not a run folder, or damaged, or has a newer format.
    """
    folder = Path(path)
    if not is_run(folder):
        raise ValueError(f"a run must be a folder with {CONFIG}, {folder} has none")
    return Run(folder, read_settings(folder / CONFIG))


def read_settings(path: Path) -> schema.Settings:
    """Read the settings in a `config.json`, by group and name; format 1 is converted.

    A setting that is newer than the folder is missing: it takes its default where it is used.

    Raises:
        ValueError: the file is damaged, has a newer format, or an unknown setting of format 1.
    """
    if _read_format(path) > 1:
        return _read_model(path, schema.ConfigFile).settings
    flat = _read_model(path, schema.FlatConfigFile).settings
    try:
        return schema.nested_settings(flat)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def is_run(path: Path) -> bool:
    """Whether a folder is a run folder, intact or damaged."""
    return (path / CONFIG).is_file()


def check_writable(path: Path) -> None:
    """Raise OSError unless files can be created in a folder and its disk has room for a run."""
    probe = path / f".probe-{os.getpid()}"
    probe.touch()
    probe.unlink()
    free = shutil.disk_usage(path).free
    if free < MIN_FREE_BYTES:
        raise OSError(f"{MIN_FREE_BYTES // 10**6} MB must be free, there are {free // 10**6} MB")


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
        _write_model(folder / name, evaluation)
        if suffixes or games is None:
            return [name]
        _write_model(folder / GAMES, games, indent=None)
    except OSError as error:
        raise ValueError(f"a run folder must be writable, {folder} is not: {error}") from error
    return [name, GAMES]


def write_workflow(folder: Path, workflow: schema.WorkflowFile) -> None:
    """Write `workflow.json`, the result of training to an order, into a run folder."""
    _write_model(folder / WORKFLOW, workflow)


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read the folder of a checkpoint.

    Raises:
        ValueError: it is damaged or has a newer format.
    """
    from safetensors import SafetensorError  # noqa: PLC0415 - only runs with a policy need it
    from safetensors.numpy import load  # noqa: PLC0415

    header = _read_model(folder / STATE, schema.CheckpointFile)
    try:
        state = json.loads((folder / STATE).read_bytes())
        weights = (folder / WEIGHTS).read_bytes()
        if hashlib.sha256(weights).hexdigest() != header.sha256:
            raise ValueError(f"{folder} is damaged: its weights are not those that were saved")
        return Checkpoint(folder, load(weights), state)
    except (OSError, SafetensorError) as error:
        raise damage_error(folder, error) from error


def read_table(path: Path) -> Columns:
    """Read a table of numbers; nan where a cell is empty, no columns where there is no file.

    An incomplete last line is skipped.

    Raises:
        ValueError: a cell is not a number.
    """
    if not path.is_file():
        return {}
    try:
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
        rows = list(csv.DictReader(lines, strict=True))
        return {
            name: [float(row[name] or "nan") for row in rows] for name in (rows[0] if rows else [])
        }
    except (OSError, UnicodeDecodeError, csv.Error, ValueError, TypeError) as error:
        raise damage_error(path, error) from error


class TableWriter:
    """Appends rows of numbers to a CSV file."""

    def __init__(
        self, path: Path, columns: Iterable[str], *, last_update: int | None = None
    ) -> None:
        """Start an empty table, or keep the rows up to and including `last_update`."""
        self._columns = tuple(columns)
        rows = [] if last_update is None else _rows_until(path, last_update)
        header = ",".join(self._columns) + "\n"
        replace_file(path, (header + "".join(map(self._to_line, rows))).encode())
        self._file = path.open("a", encoding="utf-8")

    def append(self, row: Mapping[str, float | None]) -> None:
        """Append a row; cells of columns that are missing in `row` stay empty."""
        self._file.write(self._to_line(row))
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _to_line(self, row: Mapping[str, float | None]) -> str:
        return ",".join(_to_cell(row.get(column)) for column in self._columns) + "\n"


def read_rows(path: Path, model: type[Row]) -> list[Row]:
    """Read a CSV file with one row per `model`; empty cells take the defaults of the model.

    Raises:
        ValueError: the file cannot be read, or a cell does not fit the model.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = [_without_empty(row) for row in csv.DictReader(file, strict=True)]
        return msgspec.convert(rows, list[model], strict=False)  # type: ignore[valid-type]
    except (OSError, UnicodeDecodeError, csv.Error, msgspec.ValidationError) as error:
        raise damage_error(path, error) from error


def write_rows(path: Path, model: type[Row], rows: Iterable[Row]) -> None:
    """Replace a CSV file by one with a row per struct of type `model`."""
    text = io.StringIO()
    names = [column.encode_name for column in msgspec.structs.fields(model)]
    table = csv.DictWriter(text, names, lineterminator="\n")
    table.writeheader()
    for row in rows:
        cells = msgspec.to_builtins(row)
        table.writerow({name: _to_cell(cells[name]) for name in names})
    replace_file(path, text.getvalue().encode())


def damage_error(path: Path, error: Exception) -> ValueError:
    """The error about a file or folder that cannot be read, in one sentence."""
    reason = str(error)
    return ValueError(f"{path} is damaged: {reason[:1].lower()}{reason[1:]}")


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file atomically."""
    fresh = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        _write_and_sync(fresh, content)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def to_json(model: JsonModel, indent: int | None = 1) -> str:
    """The content of a JSON file of a run folder."""
    content = {"format": model.FORMAT, **msgspec.to_builtins(model, str_keys=True)}
    encoded = msgspec.json.encode(content)
    return (encoded if indent is None else msgspec.json.format(encoded, indent=indent)).decode()


def _write_model(path: Path, model: JsonModel, indent: int | None = 1) -> None:
    replace_file(path, (to_json(model, indent) + "\n").encode())


def _read_if_exists(path: Path, model: type[Model]) -> Model | None:
    return _read_model(path, model) if path.is_file() else None


def _read_model(path: Path, model: type[Model]) -> Model:
    number = _read_format(path)
    if number > model.FORMAT:
        raise ValueError(
            f"{path} has format {number}, this cagepool reads up to {model.FORMAT}: "
            "a newer cagepool is needed"
        )
    return _decode(path, model)


class _Header(msgspec.Struct):
    format: int


def _read_format(path: Path) -> int:
    return _decode(path, _Header).format


def _decode(path: Path, model: type[Decoded]) -> Decoded:
    try:
        return msgspec.json.decode(path.read_bytes(), type=model)
    except (OSError, UnicodeDecodeError, msgspec.MsgspecError) as error:
        raise damage_error(path, error) from error


def _rows_until(path: Path, last_update: int) -> list[dict[str, float]]:
    columns = read_table(path)
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    return [row for row in rows if row["update"] <= last_update]


def _without_empty(row: Mapping[str, str | None]) -> dict[str, str | None]:
    return {name: cell for name, cell in row.items() if cell != ""}


def _to_cell(value: str | float | None) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if np.isnan(value):
        return ""
    return repr(int(value)) if float(value).is_integer() else repr(float(value))


def _checkpoint_folder(path: Path, kind: str, update: int) -> Path:
    return path / CHECKPOINTS / f"{kind}-{update:06d}"


def _remove_folders(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _write_and_sync(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _to_safetensors(arrays: Arrays) -> bytes:
    from safetensors.numpy import save  # noqa: PLC0415 - only runs with a policy need it

    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def _lock_file(file: IO[bytes]) -> None:
    """Lock a file, or raise OSError if another process has locked it."""
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415 - of Windows

        file.seek(LOCKED_BYTE)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl  # noqa: PLC0415 - not on Windows

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

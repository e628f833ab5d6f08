"""The run folder: what a training leaves behind, and the only place that knows its format."""

import csv
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from cagepool.runs.settings import nested_settings
from cagepool.types import Arrays

FORMAT = 1
CONFIG_FORMAT = 2  # of config.json, whose settings are grouped since
CONFIG = "config.json"
METRICS = "metrics.csv"
CHECKS = "checks.csv"
CHECKPOINTS = "checkpoints"
WEIGHTS = "weights.safetensors"
STATE = "state.json"
SPARE_BYTES = 50_000_000  # what a run may need on the disk: checkpoints, metrics, report

Columns: TypeAlias = dict[str, list[float]]


@dataclass(frozen=True)
class Checkpoint:
    """A policy at one update, and what else was kept of that moment."""

    path: Path
    arrays: Arrays
    state: dict[str, Any]


@dataclass(frozen=True)
class Run:
    """A run folder."""

    path: Path
    settings: dict[str, Any]

    def metrics(self) -> Columns:
        """One entry an update in every column; nan where there is none."""
        return read_table(self.path / METRICS)

    def checks(self) -> Columns:
        """One entry a check on other seeds."""
        return read_table(self.path / CHECKS)

    def updates_of(self, kind: str) -> list[int]:
        """Updates of which there is a checkpoint, `best` or `last`, the newest at the end."""
        names = (path.name for path in (self.path / CHECKPOINTS).glob(f"{kind}-*"))
        numbers = (name.removeprefix(f"{kind}-") for name in names)
        return sorted(int(number) for number in numbers if number.isdecimal())

    def checkpoint(self, kind: str = "best") -> Checkpoint:
        """The newest checkpoint of a kind, `best` or `last`.

        Raises:
            ValueError: there is none, or it is damaged.
        """
        updates = self.updates_of(kind)
        if not updates:
            raise ValueError(f"a run must have a checkpoint {kind!r}, {self.path} has none")
        return read_checkpoint(_folder(self.path, kind, updates[-1]))

    def save_checkpoint(self, kind: str, arrays: Arrays, state: Mapping[str, Any]) -> None:
        """Keep a checkpoint in the place of older ones of its kind, all of it or nothing.

        Raises:
            OSError: it can't be written; the older ones are still there.
        """
        target = _folder(self.path, kind, state["update"])
        fresh = target.with_name(f".{kind}")
        old = target.with_name(f".{kind}-old")
        _remove(fresh, old)  # what was left behind when a run was killed
        try:
            fresh.mkdir(parents=True)
            data = _serialised(arrays)
            _write(fresh / WEIGHTS, data)
            full = {"format": FORMAT, "sha256": hashlib.sha256(data).hexdigest(), **state}
            _write(fresh / STATE, json.dumps(full, indent=1).encode())
            if target.exists():
                target.rename(old)
            fresh.rename(target)
        finally:
            _remove(fresh)
        others = (update for update in self.updates_of(kind) if update != state["update"])
        _remove(old, *(_folder(self.path, kind, update) for update in others))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from training this run; the system forgets it with the process.

        Raises:
            ValueError: another does.
        """
        with (self.path / CONFIG).open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(
                    f"a run must be trained by one process at a time, {self.path} is being trained"
                ) from None
            yield

    def discard(self) -> None:
        """Remove the folder again if nothing was done in it yet."""
        if [path.name for path in self.path.iterdir()] == [CONFIG]:
            _remove(self.path)


def create(path: Path, settings: Mapping[str, Any], version: str) -> Run:
    """Make a new run folder.

    Raises:
        ValueError: there is something already, or it can't be written.
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ValueError(
            f"a run needs a folder of its own, {path} is in use: name another with --out, "
            "or go on with it with --resume"
        )
    try:
        path.mkdir(parents=True, exist_ok=True)
        check_room(path)
        config = {"format": CONFIG_FORMAT, "cagepool": version, "settings": dict(settings)}
        write_json(path / CONFIG, config)
    except OSError as error:
        raise ValueError(f"a run folder must be writable, {path} is not: {error}") from error
    return Run(path, dict(settings))


def open_run(path: str | Path) -> Run:
    """A run folder that is there.

    Raises:
        ValueError: it is not a run folder, or one of a newer format, or damaged.
    """
    folder = Path(path)
    if not (folder / CONFIG).is_file():
        raise ValueError(f"a run must be a folder with {CONFIG}, {folder} has none")
    config = _read_json(folder / CONFIG, CONFIG_FORMAT)
    return Run(folder, config_settings(config, folder / CONFIG))


def config_settings(config: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Settings in the content of a config.json, nested by group.

    Raises:
        ValueError: it has none, or unknown ones.
    """
    settings = config.get("settings")
    if not isinstance(settings, dict):
        raise ValueError(f"{path} is damaged: it has no settings")
    try:
        return nested_settings(settings) if config["format"] == 1 else settings
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def is_run(path: Path) -> bool:
    """Whether a folder says that it is a run, intact or not."""
    return (path / CONFIG).is_file()


def check_room(path: Path) -> None:
    """Raise OSError unless a run has room on the disk and may write there."""
    probe = path / f".probe-{os.getpid()}"
    probe.touch()
    probe.unlink()
    free = shutil.disk_usage(path).free
    if free < SPARE_BYTES:
        raise OSError(f"{SPARE_BYTES // 10**6} MB must be free, there are {free // 10**6} MB")


def read_checkpoint(folder: Path) -> Checkpoint:
    """What is in a checkpoint's folder.

    Raises:
        ValueError: it is damaged or of a newer format.
    """
    _need_safetensors()
    from safetensors import SafetensorError  # noqa: PLC0415 - only for runs
    from safetensors.numpy import load  # noqa: PLC0415

    state = _read_json(folder / STATE)
    try:
        data = (folder / WEIGHTS).read_bytes()
        if hashlib.sha256(data).hexdigest() != state.get("sha256"):
            raise ValueError(f"{folder} is damaged: its weights are not those that were saved")
        return Checkpoint(folder, load(data), state)
    except (OSError, SafetensorError) as error:
        raise ValueError(f"{folder} is damaged: {error}") from error


def read_table(path: Path) -> Columns:
    """Columns of a table of numbers; nan where there is none, and no columns without a file.

    A last line that was not written to its end is left out.

    Raises:
        ValueError: something in it is not a number.
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
        raise ValueError(f"{path} is damaged: {error}") from error


class Table:
    """A table of numbers that grows by a row at a time, in a file."""

    def __init__(self, path: Path, columns: Iterable[str], *, until: int | None = None) -> None:
        """Begin a table, or go on with the rows whose `update` is not above `until`."""
        self._columns = tuple(columns)
        kept = read_table(path) if until is not None else {}
        rows = [dict(zip(kept, row, strict=True)) for row in zip(*kept.values(), strict=True)]
        kept_rows = [row for row in rows if until is not None and row["update"] <= until]
        header = ",".join(self._columns) + "\n"
        text = header + "".join(self._line(row) for row in kept_rows)
        replace_file(path, text.encode())
        self._file = path.open("a", encoding="utf-8")

    def append(self, row: Mapping[str, float | None]) -> None:
        """Add a row; columns that it does not have stay empty."""
        self._file.write(self._line(row))
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _line(self, row: Mapping[str, float | None]) -> str:
        return ",".join(_shown(row.get(column)) for column in self._columns) + "\n"


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file, all of it or nothing."""
    replace_file(path, (json.dumps(content, indent=1) + "\n").encode())


def replace_file(path: Path, content: bytes) -> None:
    """Put a file in the place of another, all of it or nothing."""
    fresh = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        _write(fresh, content)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _shown(value: float | None) -> str:
    if value is None or np.isnan(value):
        return ""
    return repr(int(value)) if float(value).is_integer() else repr(float(value))


def _folder(path: Path, kind: str, update: int) -> Path:
    return path / CHECKPOINTS / f"{kind}-{update:06d}"


def _remove(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _serialised(arrays: Arrays) -> bytes:
    _need_safetensors()
    from safetensors.numpy import save  # noqa: PLC0415 - only for runs

    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def _read_json(path: Path, newest: int = FORMAT) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("format"), int):
        raise ValueError(f"{path} is not of ours: it names no format")
    if content["format"] > newest:
        raise ValueError(
            f"{path} has format {content['format']}, this cagepool reads up to {newest}: "
            "a newer cagepool is needed"
        )
    return content


def _need_safetensors() -> None:
    if find_spec("safetensors") is None:
        raise ValueError("checkpoints need safetensors: pip install 'cagepool[train]'")

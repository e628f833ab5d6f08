"""Files of run folders, CSV tables included: read without trust, replaced atomically.

Every reader of a file that may come from a stranger goes through `read_bytes`, so that a FIFO does
not block, a link does not lead out of the folder, and a huge file does not fill the memory. All
faults are a `RunFileError`.
"""

import csv
import hashlib
import io
import math
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeAlias, TypeVar

import msgspec
import numpy as np

from cagepool import _optional
from cagepool.errors import RunFileError
from cagepool.runs.schema import PROGRESS_COLUMNS
from cagepool.types import Arrays

MAX_JSON_BYTES = 64_000_000
MAX_TABLE_BYTES = 512_000_000
MAX_WEIGHTS_BYTES = 2_000_000_000
LOCKED_BYTE = 2**30  # on Windows: beyond the end of the file, whose bytes others must still read

Decoded = TypeVar("Decoded")

_TEMPORARY = re.compile(r"\..+-(?P<pid>[0-9]{1,9})\.tmp")
_KINDS = {
    stat.S_IFBLK: "a device", stat.S_IFCHR: "a device", stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket",
}  # fmt: skip


def damage_error(path: Path, error: Exception) -> RunFileError:
    """The error about a file or folder that cannot be read, in one sentence."""
    if isinstance(error, OSError):
        return RunFileError(f"{path} must be a file that can be read: {error.strerror or error}")
    reason = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, RecursionError):
        reason = "it is nested too deeply"
    return RunFileError(f"{path} is damaged: {reason[:1].lower()}{reason[1:]}")


@contextmanager
def open_regular(path: Path, *, follow_link: bool = False) -> Iterator[IO[bytes]]:
    """Open a regular file for reading: the open of a FIFO would wait for a writer."""
    if not follow_link and path.is_symlink():
        raise RunFileError(f"{path} must be a regular file, it is a link")
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "of another kind")
        raise RunFileError(f"{path} must be a regular file, it is {kind}")
    with path.open("rb") as file:
        yield file


def read_bytes(path: Path, limit: int, *, follow_link: bool = False) -> bytes:
    """Read a regular file of at most `limit` bytes.

    Files inside of run folders may not be links: a link of a stranger's folder would lead to files
    of the reader.
    """
    try:
        with open_regular(path, follow_link=follow_link) as file:
            size = os.fstat(file.fileno()).st_size
            content = file.read(min(size, limit) + 1)  # not `limit`: Python allocates that much
    except OSError as error:
        raise damage_error(path, error) from error
    if len(content) > limit:
        raise RunFileError(f"{path} must have at most {limit:,} bytes, it has more")
    return content


def read_json(path: Path, model: type[Decoded], *, follow_link: bool = False) -> Decoded:
    """Read a JSON file of at most `MAX_JSON_BYTES` into a type of msgspec's."""
    return decode_json(path, read_bytes(path, MAX_JSON_BYTES, follow_link=follow_link), model)


def decode_json(path: Path, content: bytes, model: type[Decoded]) -> Decoded:
    """Decode the content of a JSON file; `path` is for the error."""
    try:
        return msgspec.json.decode(content, type=model)
    except (ValueError, RecursionError) as error:
        raise damage_error(path, error) from error


def read_tensors(path: Path, sha256: str) -> Arrays:
    """Read a safetensors file with this hash; arrays of floats must be finite."""
    with _optional.require("a policy", None, "safetensors"):
        from safetensors import SafetensorError  # noqa: PLC0415 - only runs with a policy need it
        from safetensors.numpy import load  # noqa: PLC0415

    content = read_bytes(path, MAX_WEIGHTS_BYTES)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise RunFileError(f"{path.parent} is damaged: its weights are not those that were saved")
    try:
        arrays = load(content)
    except (SafetensorError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise damage_error(path, error) from error
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise RunFileError(f"{path} must have finite weights, those of {name} are not")
    return arrays


def to_tensors(arrays: Arrays) -> bytes:
    """The content of a safetensors file."""
    from safetensors.numpy import save  # noqa: PLC0415 - only runs with a policy need it

    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def create_file(path: Path, content: bytes) -> None:
    """Create a file with its content, atomically: of several processes, one succeeds."""
    with _temporary_file(path, content) as fresh:
        try:
            os.link(fresh, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            write_and_sync(path, content)
    sync_folder(path.parent)


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file atomically."""
    with _temporary_file(path, content) as fresh:
        fresh.replace(path)
    sync_folder(path.parent)


def write_and_sync(path: Path, content: bytes) -> None:
    """Write a new file to the disk."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Write the names in a folder to the disk: renamed files survive a loss of power."""
    if sys.platform == "win32":  # folders cannot be opened there
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def is_temporary(name: str) -> bool:
    """Whether a file has the name of a temporary file."""
    return _TEMPORARY.fullmatch(name) is not None


def remove_temporary_files(folder: Path) -> None:
    """Remove temporary files of processes that have been killed."""
    for path in _entries(folder):
        if (match := _TEMPORARY.fullmatch(path.name)) and not _is_other_process(match["pid"]):
            with suppress(OSError):
                path.unlink()


def lock_file(file: IO[Any]) -> None:
    """Lock a file, or raise OSError if another process has locked it."""
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415 - of Windows

        file.seek(LOCKED_BYTE)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl  # noqa: PLC0415 - not on Windows

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def _temporary_file(path: Path, content: bytes) -> Iterator[Path]:
    """A file beside `path` with this content, which is removed unless the block moves it."""
    fresh = path.with_name(f".{path.name}-{os.getpid()}.tmp")
    fresh.unlink(missing_ok=True)  # of a killed process with the same id, or a link
    try:
        write_and_sync(fresh, content)
        yield fresh
    finally:
        fresh.unlink(missing_ok=True)


def _entries(folder: Path) -> Iterable[Path]:
    try:
        return [*folder.iterdir()]
    except OSError:
        return []


def _is_other_process(pid: str) -> bool:
    """Whether a process of that id runs, other than this one."""
    if int(pid) == os.getpid() or sys.platform == "win32":
        return False  # on Windows, an open file cannot be removed
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


Columns: TypeAlias = dict[str, list[float]]

Row = TypeVar("Row", bound=msgspec.Struct)

_NUMBER_LIMIT = 2.0**53  # of updates, episodes and steps


def read_table(path: Path, required: Iterable[str] = ()) -> Columns:
    """Read a table of finite numbers; nan where a cell is empty.

    An incomplete last line is skipped. A file that is missing or has no rows gives no columns.
    """
    if not os.path.lexists(path):
        return {}
    header, *rows = _read_cells(path, whole_lines=True) or [[]]
    missing = [name for name in required if name not in header]
    if rows and missing:
        raise RunFileError(f"{path} is damaged: it has no column {', '.join(missing)}")
    cells = dict(zip(header, zip(*rows, strict=True), strict=True)) if rows else {}
    try:
        return {name: [_to_number(name, cell) for cell in cells[name]] for name in cells}
    except ValueError as error:
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

    def sync(self) -> None:
        """Write the rows to the disk: they survive a loss of power."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _to_line(self, row: Mapping[str, float | None]) -> str:
        return ",".join(_to_cell(row.get(column)) for column in self._columns) + "\n"


def read_rows(path: Path, model: type[Row]) -> list[Row]:
    """Read a CSV file with one row per `model`; empty cells take the defaults of the model."""
    header, *lines = _read_cells(path) or [[]]
    rows = [{name: cell for name, cell in zip(header, line, strict=True) if cell} for line in lines]
    try:
        structs = msgspec.convert(rows, list[model], strict=False)  # type: ignore[valid-type]
        for row in structs:
            _check_finite(row)
    except ValueError as error:
        raise damage_error(path, error) from error
    return structs


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


def _read_cells(path: Path, *, whole_lines: bool = False) -> list[list[str]]:
    """Lines of a CSV file as lists of equal length; `whole_lines` skips an incomplete last one."""
    try:
        text = read_bytes(path, MAX_TABLE_BYTES).decode()
        lines = text.split("\n")[:-1] if whole_lines else io.StringIO(text, newline="")
        rows = [row for row in csv.reader(lines, strict=True) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise damage_error(path, error) from error
    header = rows[0] if rows else []
    if len({*header}) < len(header):
        raise RunFileError(f"{path} is damaged: a column is there twice")
    for number, row in enumerate(rows):
        if len(row) != len(header):
            raise RunFileError(
                f"{path} is damaged: row {number} must have {len(header)} cells, has {len(row)}"
            )
    return rows


def _to_number(column: str, cell: str) -> float:
    number = float(cell or "nan")
    if column in PROGRESS_COLUMNS and not 0 <= number <= _NUMBER_LIMIT:
        raise ValueError(f"{column} must be at least 0, got {cell!r}")
    if math.isinf(number):
        raise ValueError(f"{column} must be finite, got {cell!r}")
    return number


def _check_finite(row: msgspec.Struct) -> None:
    for name, value in msgspec.structs.asdict(row).items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{name} must be finite, got {value}")


def _rows_until(path: Path, last_update: int) -> list[dict[str, float]]:
    columns = read_table(path, required=("update",))
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    return [row for row in rows if row["update"] <= last_update]


def _to_cell(value: str | float | None) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if not math.isfinite(value):
        return ""
    return repr(int(value)) if float(value).is_integer() else repr(float(value))

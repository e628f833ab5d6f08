"""Tables of a run folder: CSV files that grow by rows, and CSV files with one row per struct."""

import csv
import io
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias, TypeVar

import msgspec

from cagepool.errors import RunFileError
from cagepool.runs.file_access import MAX_TABLE_BYTES, damage_error, read_bytes, replace_file
from cagepool.runs.schema import PROGRESS_COLUMNS

Columns: TypeAlias = dict[str, list[float]]

Row = TypeVar("Row", bound=msgspec.Struct)

_NUMBER_LIMIT = 2.0**53  # of updates, episodes and steps


def read_table(path: Path, columns: Iterable[str] = (), *, required: Iterable[str] = ()) -> Columns:
    """Read a table of finite numbers; nan where a cell is empty.

    An incomplete last line is skipped.

    Args:
        path: Of the table; if there is none, or it has no rows, there are no columns.
        columns: Columns of the result. Those that the table lacks are nan.
        required: Columns that the table must have.

    Raises:
        RunFileError: the file cannot be read, a column is missing, or a cell is not a number.
    """
    if not os.path.lexists(path):
        return {}
    header, *rows = _read_cells(path, whole_lines=True) or [[]]
    missing = [name for name in required if name not in header]
    if rows and missing:
        raise RunFileError(f"{path} is damaged: it has no column {', '.join(missing)}")
    cells = dict(zip(header, zip(*rows, strict=True), strict=True)) if rows else {}
    try:
        found = {name: [_to_number(name, cell) for cell in cells[name]] for name in cells}
    except ValueError as error:
        raise damage_error(path, error) from error
    absent = (name for name in columns if found and name not in found)
    return found | {name: [math.nan] * len(rows) for name in absent}


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
    """Read a CSV file with one row per `model`; empty cells take the defaults of the model.

    Raises:
        RunFileError: the file cannot be read, or a cell does not fit the model.
    """
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

"""The run folder: its files, their schema, and the list of runs below a folder."""

from cagepool.errors import RunFileError
from cagepool.runs.file_access import (
    MAX_JSON_BYTES,
    MAX_WEIGHTS_BYTES,
    damage_error,
    read_bytes,
    read_json,
    replace_file,
)
from cagepool.runs.folder import (
    Checkpoint,
    Run,
    create,
    is_run,
    open_run,
    read_checkpoint,
    read_settings,
    to_json,
    write_evaluation,
    write_workflow,
)
from cagepool.runs.schema import (
    CHECKPOINTS,
    CHECKS,
    CONFIG,
    METRICS,
    STATE,
    WEIGHTS,
    WORKFLOW,
    flat_settings,
)
from cagepool.runs.tables import Columns, TableWriter, read_rows, read_table, write_rows

__all__ = [
    "CHECKPOINTS",
    "CHECKS",
    "CONFIG",
    "MAX_JSON_BYTES",
    "MAX_WEIGHTS_BYTES",
    "METRICS",
    "STATE",
    "WEIGHTS",
    "WORKFLOW",
    "Checkpoint",
    "Columns",
    "Run",
    "RunFileError",
    "TableWriter",
    "create",
    "damage_error",
    "flat_settings",
    "is_run",
    "open_run",
    "read_bytes",
    "read_checkpoint",
    "read_json",
    "read_rows",
    "read_settings",
    "read_table",
    "replace_file",
    "to_json",
    "write_evaluation",
    "write_rows",
    "write_workflow",
]

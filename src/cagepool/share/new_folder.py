"""Folders that a command writes: empty before, complete after."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def check_empty(folder: Path, what: str) -> None:
    """Raise ValueError unless a folder does not exist or is empty; `what` is to be written."""
    if os.path.lexists(folder) and not folder.is_dir():
        raise ValueError(f"{what} must be written to a folder, {folder} is a file")
    if folder.is_dir() and any(folder.iterdir()):
        raise ValueError(f"{what} needs an empty folder, {folder} is not empty")


@contextmanager
def complete_folder(target: Path, what: str) -> Iterator[Path]:
    """A folder of the same name beside the target, which replaces the target if all goes well.

    Raises:
        ValueError: the place of the folder is not writable.
    """
    try:
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        parent = tempfile.mkdtemp(prefix=".unfinished-", dir=target.absolute().parent)
    except OSError as error:
        raise ValueError(
            f"the folder of {what} must be writable, {target} is not: {error}"
        ) from error
    try:
        fresh = Path(parent, target.resolve().name)
        fresh.mkdir()
        yield fresh
        fresh.replace(target)
    finally:
        shutil.rmtree(parent, ignore_errors=True)

"""Files of run folders: read without trust in their authors, created and replaced atomically.

Every reader of a file that may come from a stranger goes through `read_bytes`, so that a FIFO does
not block, a link does not lead out of the folder, and a huge file does not fill the memory. All
faults are a `RunFileError`.
"""

import hashlib
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec
import numpy as np

from cagepool import _optional
from cagepool.errors import RunFileError
from cagepool.types import Arrays

MAX_JSON_BYTES = 64_000_000
MAX_TABLE_BYTES = 512_000_000
MAX_WEIGHTS_BYTES = 2_000_000_000
LOCKED_BYTE = 2**30  # on Windows: beyond the end of the file, whose bytes others must still read

Decoded = TypeVar("Decoded")

_TEMPORARY = re.compile(r"\..+-(?P<pid>[0-9]{1,9})\.tmp|\.(?:.+\.(?:json|csv|html)|probe)-[0-9]+")
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
    """Open a regular file for reading: the open of a FIFO would wait for a writer.

    Raises:
        OSError: the file cannot be opened.
        RunFileError: it is not a regular one, or it is a link.
    """
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

    Args:
        path: Of the file.
        limit: Largest size in bytes.
        follow_link: Whether the file may be a symbolic link. Files inside of run folders may not:
            a link of a stranger's folder would lead to files of the reader.

    Raises:
        RunFileError: the file cannot be read, is not a regular one, or is too large.
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
    """Read a JSON file of at most `MAX_JSON_BYTES` into a type of msgspec's.

    Raises:
        RunFileError: the file cannot be read, or does not fit the type.
    """
    return decode_json(path, read_bytes(path, MAX_JSON_BYTES, follow_link=follow_link), model)


def decode_json(path: Path, content: bytes, model: type[Decoded]) -> Decoded:
    """Decode the content of a JSON file; `path` is for the error.

    Raises:
        RunFileError: the content is not JSON, or does not fit the type.
    """
    try:
        return msgspec.json.decode(content, type=model)
    except (ValueError, RecursionError) as error:
        raise damage_error(path, error) from error


def read_tensors(path: Path, sha256: str) -> Arrays:
    """Read a safetensors file with this hash; arrays of floats must be finite.

    Raises:
        RunFileError: the file cannot be read, has another hash, or a value is not finite.
    """
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
    """Create a file with its content, atomically: of several processes, one succeeds.

    Raises:
        FileExistsError: the file exists.
    """
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
    """Write a new file to the disk.

    Raises:
        FileExistsError: there is a file or a link of that name.
    """
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
    """Whether a file has a name of the temporary files of this or an older version."""
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


def _is_other_process(pid: str | None) -> bool:
    """Whether a process of that id runs, other than this one."""
    if pid is None or int(pid) == os.getpid() or sys.platform == "win32":
        return False  # on Windows, an open file cannot be removed
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True

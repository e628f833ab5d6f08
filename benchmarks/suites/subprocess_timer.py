"""Timers in other processes: another build of cagepool, CybORG or MiniCAGE in another Python."""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import Self

import numpy as np

SCRIPTS = Path(__file__).parent / "scripts"


class SubprocessTimer:
    """Timer in another process: reads a number of calls per line, answers with seconds."""

    def __init__(self, command: list[str]) -> None:
        """Start the process."""
        self._command = command
        # Not a pipe: a full pipe that nobody reads would block the process.
        self._stderr = TemporaryFile("w+", errors="replace")  # noqa: SIM115 - closed at the exit
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
        )

    def __call__(self, calls: int, /) -> float:
        """Return the seconds of `calls` calls.

        Raises:
            RuntimeError: the process has ended; the message has the end of its error output.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(calls, file=self._process.stdin, flush=True)
        except BrokenPipeError:
            answer = ""
        else:
            answer = self._process.stdout.readline()
        if not answer:
            self._process.kill()
            self._process.wait()
            self._stderr.seek(0)
            error = self._stderr.read().strip()
            raise RuntimeError(f"{' '.join(self._command)} has ended: {error[-500:]}")
        return float(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._stderr.close()


def time_other_build(folder: Path, games: int, red: str) -> SubprocessTimer:
    """Start a timer of `Batch.step` of a build that is installed in a folder of its own.

    Raises:
        ValueError: the folder has no build.
    """
    return SubprocessTimer([*_command_in_build(folder, "time_batch.py"), str(games), red])


def time_other_training(folder: Path, work: str, threads: int) -> SubprocessTimer:
    """Start a timer of the trainer of such a build; `work` is collection or training.

    Raises:
        ValueError: the folder has no build.
    """
    return SubprocessTimer([*_command_in_build(folder, "time_training.py"), work, str(threads)])


def _command_in_build(folder: Path, script: str) -> list[str]:
    if not list(folder.glob("cagepool/_core*")):
        raise ValueError(f"other_build must be a folder with a build of cagepool, got {folder}")
    # -S hides an editable install, and with it the folder of the libraries.
    libraries = Path(np.__file__).parents[1]
    return [sys.executable, "-S", str(SCRIPTS / script), str(folder), str(libraries)]


def time_cyborg(python: str, red: str) -> SubprocessTimer:
    """Start a timer of CybORG with the official wrapper.

    Raises:
        ValueError: this Python cannot import CybORG.
    """
    if not has_cyborg(python):
        raise ValueError(f"cyborg_python must be a Python that can import CybORG, got {python}")
    return SubprocessTimer([python, "-W", "ignore", str(SCRIPTS / "time_cyborg.py"), red])


def time_minicage(folder: Path, games: int, red: str) -> SubprocessTimer:
    """Start a timer of a batch of MiniCAGE.

    Raises:
        ValueError: the folder does not contain the package `mini_CAGE`.
    """
    if not (folder / "mini_CAGE" / "__init__.py").exists():
        raise ValueError(f"minicage must be a folder with the package mini_CAGE, got {folder}")
    script = [str(SCRIPTS / "time_minicage.py"), str(folder), str(games), red]
    return SubprocessTimer([sys.executable, "-W", "ignore", *script])


def has_cyborg(python: str) -> bool:
    """Whether a Python interpreter can import CybORG."""
    command = [python, "-c", "import importlib.util as u; exit(u.find_spec('CybORG') is None)"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False

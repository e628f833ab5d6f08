"""Contenders that need another process: another build of ours, CybORG beside other libraries."""

import subprocess
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryFile
from typing import Self

PROBES = Path(__file__).parent / "probes"


class Elsewhere:
    """A clock in another process. It is sent numbers of calls and answers with seconds."""

    def __init__(self, command: list[str]) -> None:
        """Start the process."""
        self._command = command
        # Not a pipe: nobody reads it while the process runs, and a full one would stop the process.
        self._words = TemporaryFile("w+", errors="replace")  # noqa: SIM115 - closed at the exit
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            text=True,
        )

    def __call__(self, calls: int, /) -> float:
        """Seconds that so many calls took there.

        Raises:
            RuntimeError: the process has died; its last words are in the message.
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
            self._words.seek(0)
            words = self._words.read().strip()
            raise RuntimeError(f"{' '.join(self._command)} has died: {words[-500:]}")
        return float(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._words.close()


def another_build(folder: Path, games: int, red: str) -> Elsewhere:
    """`Batch.step` of a build of ours that was installed into a folder of its own.

    Raises:
        ValueError: there is none in that folder.
    """
    if not list(folder.glob("cagepool/_core*")):
        raise ValueError(f"the folder must hold another build of cagepool, got {folder}")
    # -S keeps an editable install out of sight.
    probe = [str(PROBES / "batch.py"), str(folder), sysconfig.get_path("purelib"), str(games), red]
    return Elsewhere([sys.executable, "-S", *probe])


def cyborg(python: str, red: str) -> Elsewhere:
    """CybORG with the official wrapper, in a Python that can import it.

    Raises:
        ValueError: that Python cannot.
    """
    if not has_cyborg(python):
        raise ValueError(f"cyborg_python must be a Python that can import CybORG, got {python}")
    return Elsewhere([python, "-W", "ignore", str(PROBES / "cyborg.py"), red])


def minicage(folder: Path, games: int, red: str) -> Elsewhere:
    """A batch of MiniCAGE, whose package `mini_CAGE` is in that folder.

    Raises:
        ValueError: it is not.
    """
    if not (folder / "mini_CAGE" / "__init__.py").exists():
        raise ValueError(f"minicage must be a folder with the package mini_CAGE, got {folder}")
    probe = [str(PROBES / "minicage.py"), str(folder), str(games), red]
    return Elsewhere([sys.executable, "-W", "ignore", *probe])


def has_cyborg(python: str) -> bool:
    """Whether that Python can import CybORG."""
    command = [python, "-c", "import importlib.util as u; exit(u.find_spec('CybORG') is None)"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False

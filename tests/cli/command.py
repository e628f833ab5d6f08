"""Subprocesses of `cagepool` with an output of 80 columns."""

import os
import subprocess
import sys
from pathlib import Path

PLAIN = {"PYTHONIOENCODING": "utf-8", "COLUMNS": "80", "FORCE_COLOR": ""}


def python(
    *arguments: str, cwd: Path | None = None, **environ: str
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, **PLAIN, **environ},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=180,
    )


def cagepool(
    *arguments: str, cwd: Path | None = None, **environ: str
) -> "subprocess.CompletedProcess[str]":
    """Run a command as the installed script does: without the current folder on the path."""
    return python("-P", "-m", "cagepool", *arguments, cwd=cwd, **environ)

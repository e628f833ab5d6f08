"""Subprocesses of `cagepool` with an output of 80 columns."""

import os
import subprocess
import sys

PLAIN = {"PYTHONIOENCODING": "utf-8", "COLUMNS": "80", "FORCE_COLOR": ""}


def python(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **PLAIN},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )


def cagepool(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return python("-m", "cagepool", *arguments)

"""Commands of `cagepool` with an output of 80 columns, in this process or in one of their own."""

import io
import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from cagepool.cli import main
from tests.environment import LIMIT_S

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
        timeout=LIMIT_S,
    )


def cagepool_process(
    *arguments: str, cwd: Path | None = None, **environ: str
) -> "subprocess.CompletedProcess[str]":
    """Run a command as the installed script does: without the current folder on the path."""
    return python("-P", "-m", "cagepool", *arguments, cwd=cwd, **environ)


def cagepool(
    *arguments: str, cwd: Path | None = None, **environ: str
) -> "subprocess.CompletedProcess[str]":
    """Run a command in this process, which takes milliseconds instead of half a second."""
    modules = set(sys.modules)
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with (
        chdir(cwd or Path.cwd()),
        patch.dict(os.environ, {**PLAIN, **environ}),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            code = main.run([*arguments])
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    for name in set(sys.modules) - modules:  # those of the folder: another test has others
        if cwd and str(getattr(sys.modules[name], "__file__", None)).startswith(str(cwd)):
            del sys.modules[name]
    said, errors = (text.buffer.getvalue().decode() for text in (out, err))
    return subprocess.CompletedProcess(arguments, code, said, errors)

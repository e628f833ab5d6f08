"""The stub of the compiled module is the one that is committed."""

import subprocess
import sys
from pathlib import Path

from cagepool import _core

STUB = Path(__file__).parents[1] / "src" / "cagepool" / "_core.pyi"


def test_the_committed_stub_describes_the_compiled_module(tmp_path: Path) -> None:
    generated = tmp_path / STUB.name
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", _core.__name__]
    subprocess.run([*command, "-o", generated], check=True)
    assert generated.read_text() == STUB.read_text(), "write it anew with `make stub`"

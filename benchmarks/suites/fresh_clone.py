"""Time from a fresh clone to the first update of `make train`, and what it installs and prints.

`python -m benchmarks.suites.fresh_clone 03258d6 HEAD` writes benchmarks/results/fresh_clone.json.
pip starts with an empty cache. Which PyTorch is installed, with or without CUDA, depends on pip's
settings.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from cagepool.bench.system_load import describe_machine

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "benchmarks" / "results" / "fresh_clone.json"
TIME_LIMIT_S = 1200
WHAT = (
    "make train in a fresh clone with an empty cache of pip, until the first update of the training"
)


def measure(commit: str, folder: Path) -> dict[str, Any]:
    """Clone, run `make train` until the first update, and end it."""
    inherited = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "MAKEFLAGS", "MAKELEVEL")
    environment = {name: value for name, value in os.environ.items() if name not in inherited}
    environment["PIP_CACHE_DIR"] = str(folder / "cache")
    clone, log = folder / "clone", folder / "log.txt"
    start = time.perf_counter()
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    subprocess.run(["git", "checkout", "-q", commit], cwd=clone, check=True)
    with log.open("wb") as output:
        training = subprocess.Popen(
            ["make", "train", "RUN=runs/first"],
            cwd=clone,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait_for_update(training, clone / "runs" / "first" / "metrics.csv")
        seconds = time.perf_counter() - start
    finally:
        os.killpg(training.pid, signal.SIGTERM)
        training.wait()
    return {"seconds": round(seconds, 1), **_installed(clone), **_printed(log.read_text())}


def main() -> None:
    """Measure the commits of the command line one after another."""
    rows = []
    for revision in sys.argv[1:]:
        command = ["git", "rev-parse", "--short=10", revision]
        asked = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        commit = asked.stdout.strip()
        with tempfile.TemporaryDirectory() as folder:
            rows.append({"commit": commit, **measure(commit, Path(folder))})
        print(rows[-1])
    result = {"what": WHAT, "machine": describe_machine(), "clones": rows}
    RESULT.write_text(f"{json.dumps(result, indent=1)}\n")


def _wait_for_update(training: "subprocess.Popen[bytes]", metrics: Path) -> None:
    deadline = time.perf_counter() + TIME_LIMIT_S
    while not metrics.exists() or len(metrics.read_text().splitlines()) < 2:
        if training.poll() is not None or time.perf_counter() > deadline:
            raise RuntimeError(f"make train made no update, exit code {training.returncode}")
        time.sleep(0.1)


def _installed(clone: Path) -> dict[str, int]:
    files = (path for path in (clone / ".venv").rglob("*") if not path.is_symlink())
    size = sum(path.stat().st_size for path in files if path.is_file())
    command = [str(clone / ".venv" / "bin" / "python"), "-m", "pip", "list", "--format=freeze"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True)
    return {"bytes": size, "packages": len(listed.stdout.splitlines())}


def _printed(log: str) -> dict[str, int]:
    """Lines up to the training, and those of them that are no warnings of pip's settings."""
    lines = log.partition("bin/cagepool train ")[0].splitlines()[:-1]
    quiet = [line for line in lines if not line.startswith("WARNING: ")]
    return {"lines": len(lines), "lines_without_pip_warnings": len(quiet)}


if __name__ == "__main__":
    main()

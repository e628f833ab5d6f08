"""What must be equal in two runs that differ in nothing but being stopped or killed."""

import csv
from pathlib import Path
from typing import Any

from cagepool import runs
from cagepool.types import Arrays


def table(path: Path) -> list[dict[str, str]]:
    """Rows of a table, as they are written, without the times."""
    with path.open(encoding="utf-8") as file:
        return [
            {name: value for name, value in row.items() if "seconds" not in name}
            for row in csv.DictReader(file)
        ]


def outcome(path: Path) -> dict[str, Any]:
    """Everything that a finished run leaves behind, but for the times."""
    run = runs.open_run(path)
    last, best = run.checkpoint("last"), run.checkpoint("best")
    assert last.state["finished"]
    return {
        "metrics": table(path / runs.METRICS),
        "checks": table(path / runs.CHECKS),
        "best": (best.path.name, best.state),
        "last": (last.path.name, bits(last.arrays)),
        "state": {name: last.state[name] for name in ("episodes", "steps", "update")},
    }


def bits(arrays: Arrays) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in arrays.items()}

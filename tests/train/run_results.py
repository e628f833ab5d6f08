"""Results of a run that must not change when it is stopped, killed or resumed."""

import csv
from pathlib import Path
from typing import Any

from cagepool import runs
from cagepool.types import Arrays


def table_without_times(path: Path) -> list[dict[str, str]]:
    """Rows of a table as written, without the columns of times."""
    with path.open(encoding="utf-8") as file:
        return [
            {name: value for name, value in row.items() if "seconds" not in name}
            for row in csv.DictReader(file)
        ]


def run_results(path: Path) -> dict[str, Any]:
    """Tables, checkpoints and counts of a finished run, without times."""
    run = runs.open_run(path)
    last, best = run.checkpoint("last"), run.checkpoint("best")
    assert last.state["finished"]
    return {
        "metrics": table_without_times(path / runs.METRICS),
        "checks": table_without_times(path / runs.EVALUATIONS),
        "best": (best.path.name, best.state),
        "last": (last.path.name, as_bytes(last.arrays)),
        "state": {name: last.state[name] for name in ("episodes", "steps", "update")},
    }


def as_bytes(arrays: Arrays) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in arrays.items()}

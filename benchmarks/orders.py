"""How well each named order can be learned, and what compliance costs a training.

Run it as python benchmarks/orders.py benchmarks/orders.json.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from cagepool import runs
from cagepool.bench import machine
from cagepool.sim.orders import NAMED_ORDERS
from cagepool.train import runner
from cagepool.train.config import TrainConfig
from cagepool.train.evaluation import Check
from cagepool.train.logging import Row
from cagepool.train.ppo import Trainer

REDS = ("B_lineAgent", "RedMeanderAgent")
SETTINGS: dict[str, Any] = {"total_episodes": 20_000, "patience": 200, "n_evals": 0}
COST: dict[str, Any] = {"total_episodes": 1200, "red_agent": "B_lineAgent"}
PAIRS = 9


class Last:
    """Keeps the last row."""

    row: Row

    def updated(self, row: Row) -> None:
        """An update is done."""
        self.row = row

    def checked(self, row: Row, check: Check, *, is_best: bool) -> None:
        """The policy was scored on other seeds."""


def learned(red: str, order: str) -> dict[str, Any]:
    """What came of training to an order, and how long it took."""
    with tempfile.TemporaryDirectory() as folder:
        config = TrainConfig.from_flat(**{**SETTINGS, "red_agent": red, "order": order})
        run = runs.create(Path(folder) / "run", config.as_dict(), "orders")
        last = Last()
        runner.train(run, last, lambda: False)
        outcome = json.loads((run.path / runs.WORKFLOW).read_text())
    training = {name: last.row[name] for name in ("episodes", "compliance", "decisions", "seconds")}
    return {"red": red, "name": order, **outcome, "training": training}


def cpu_seconds(settings: dict[str, Any]) -> float:
    """Time of the processor, which neighbours disturb little, for a short training."""
    with Trainer(TrainConfig.from_flat(**{**COST, **settings})) as trainer:
        start = time.process_time()
        for _ in trainer.updates():
            pass
        return time.process_time() - start


def cost() -> dict[str, Any]:
    """Whole trainings with compliance and alignment against those without, in turn."""
    judged = {"order": "critical_first", "early_stopping": False}
    cpu_seconds({})
    ratios = [1 / cpu_seconds({}) * cpu_seconds(judged) for _ in range(PAIRS)]
    low, median, high = np.percentile(ratios, [25, 50, 75])
    return {"ratio": {"median": median, "quartiles": [low, high], "n": PAIRS}, **COST}


def main(out: Path) -> None:
    """Train to every named order against each red, and write what came of it."""
    about = machine.describe()
    named = []
    for red in REDS:
        for order in NAMED_ORDERS:
            named.append(learned(red, order))
            print(red, order, named[-1]["outcome"], named[-1]["training"])
    result = {"machine": about, "settings": SETTINGS, "named": named, "cost_of_an_order": cost()}
    out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Train to each named order, and measure the cost of compliance in a training.

Run it as python -m benchmarks.suites.orders benchmarks/results/orders.json.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from cagepool import runs
from cagepool.bench import system_load
from cagepool.sim.compliance import NAMED_ORDERS
from cagepool.train import runner
from cagepool.train.config import TrainConfig
from cagepool.train.ppo import Trainer
from cagepool.train.tracking import Row

REDS = ("B_lineAgent", "RedMeanderAgent")
SETTINGS: dict[str, Any] = {"total_episodes": 20_000, "patience": 200, "n_evals": 0}
COST: dict[str, Any] = {"total_episodes": 1200, "red_agent": "B_lineAgent"}
PAIRS = 9


class LastRow:
    """Callback that keeps the last row of the metrics."""

    row: Row

    def on_update(self, row: Row) -> None:
        """Keep the row of an update."""
        self.row = row

    def on_evaluation(self, scores: Row) -> None:
        """Ignore evaluations."""


def train_to_order(red: str, order: str) -> dict[str, Any]:
    """Train to an order; return its outcome and the last metrics."""
    with tempfile.TemporaryDirectory() as folder:
        config = TrainConfig.from_flat(**{**SETTINGS, "red_agent": red, "order": order})
        run = runs.create(Path(folder) / "run", config.as_dict(), "orders")
        listener = LastRow()
        runner.train(run, listener)
        outcome = json.loads((run.path / runs.WORKFLOW).read_text())
    names = ("episodes", "compliance", "decisions", "seconds")
    training = {name: listener.row[name] for name in names}
    return {"red": red, "name": order, **outcome, "training": training}


def cpu_seconds(settings: dict[str, Any]) -> float:
    """CPU time of a short training, which other processes disturb little."""
    with Trainer(TrainConfig.from_flat(**{**COST, **settings})) as trainer:
        start = time.process_time()
        for _ in trainer.updates():
            pass
        return time.process_time() - start


def cost_of_order() -> dict[str, Any]:
    """CPU time with compliance and alignment, divided by that without, interleaved."""
    with_order = {"order": "critical_first", "early_stopping": False}
    cpu_seconds({})
    ratios = [1 / cpu_seconds({}) * cpu_seconds(with_order) for _ in range(PAIRS)]
    low, median, high = np.percentile(ratios, [25, 50, 75])
    return {"ratio": {"median": median, "quartiles": [low, high], "n": PAIRS}, **COST}


def main(out: Path) -> None:
    """Train to every named order against each red agent, and write the outcomes."""
    machine = system_load.describe_machine()
    named = []
    for red in REDS:
        for order in NAMED_ORDERS:
            named.append(train_to_order(red, order))
            print(red, order, named[-1]["outcome"], named[-1]["training"])
    result = {
        "machine": machine,
        "settings": SETTINGS,
        "named": named,
        "cost_of_an_order": cost_of_order(),
    }
    out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

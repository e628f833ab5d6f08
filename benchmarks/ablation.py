"""What each input and action helper buys: trainings that differ in one option, scored alike.

Run it as python benchmarks/ablation.py benchmarks/ablation.json.
"""

import json
import sys
import tempfile
from pathlib import Path

from cagepool import load, runs
from cagepool.bench import machine
from cagepool.bench.train import PLAIN
from cagepool.evaluate.policy import PolicyDefender
from cagepool.evaluate.rollout import Trial, score_table
from cagepool.train import runner
from cagepool.train.config import TrainConfig
from cagepool.train.evaluation import Check
from cagepool.train.logging import Row

EPISODES = 15_000
SEEDS = (0, 1, 2)
VARIANTS: dict[str, dict[str, object]] = {
    "all options": {},
    "without scan memory": {"scan_memory": False},
    "without decoys placed": {"decoys_placed": False},
    "without last action": {"last_action": False},
    "without time left": {"time_left": False},
    "without action masking": {"action_masking": False},
    "82 possible actions": {"actions": "possible"},
    "all 145 actions": {"actions": "all"},
    "46 core actions": {"actions": "core"},
    "none: 52 values, 145 actions": vars(PLAIN),
}


class Quiet:
    """Listens and says nothing."""

    def updated(self, row: Row) -> None:
        """An update is done."""

    def checked(self, row: Row, check: Check, *, is_best: bool) -> None:
        """The policy was scored on other seeds."""


def total(settings: dict[str, object]) -> float:
    """The nine-cell total of a policy trained with these settings, best by its checks."""
    with tempfile.TemporaryDirectory() as folder:
        config = TrainConfig.from_flat(**{"total_episodes": EPISODES, **settings})
        run = runs.create(Path(folder) / "run", config.as_dict(), "ablation")
        runner.train(run, Quiet(), lambda: False)
        table = score_table(PolicyDefender(load(run.path)), Trial(seed=153))
        assert table.total is not None
        return round(table.total.mean, 2)


def main(out: Path) -> None:
    """Train every variant from every seed, a seed at a time, and write the totals."""
    totals: dict[str, list[float]] = {name: [] for name in VARIANTS}
    for seed in SEEDS:
        for name, settings in VARIANTS.items():
            totals[name].append(total({**settings, "seed": seed}))
            print(f"seed {seed}, {name}: {totals[name][-1]}", flush=True)
        content = {"machine": machine.describe(), "episodes": EPISODES, "seeds": SEEDS[: seed + 1]}
        out.write_text(json.dumps({**content, "totals": totals}, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

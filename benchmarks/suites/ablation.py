"""Ablation of the policy's features and action sets: trainings that differ in one option.

Run it as python -m benchmarks.suites.ablation benchmarks/results/ablation.json.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from cagepool import load, runs
from cagepool.bench import system_load
from cagepool.bench.train import PLAIN_FEATURES
from cagepool.evaluate import Trial, score_table
from cagepool.evaluate.policy import PolicyDefender
from cagepool.train import runner
from cagepool.train.config import TrainConfig

EPISODES = 15_000
SEEDS = (0, 1, 2)
VARIANTS: dict[str, dict[str, Any]] = {
    "all options": {},
    "without scan memory": {"scan_memory": False},
    "without decoys placed": {"decoys_placed": False},
    "without last action": {"last_action": False},
    "without time left": {"time_left": False},
    "without action masking": {"action_masking": False},
    "82 possible actions": {"actions": "possible"},
    "all 145 actions": {"actions": "all"},
    "46 core actions": {"actions": "core"},
    "none: 52 values, 145 actions": vars(PLAIN_FEATURES),
}


def total_score(settings: dict[str, Any]) -> float:
    """Train with these settings; return the nine-cell total of the best policy."""
    with tempfile.TemporaryDirectory() as folder:
        config = TrainConfig.from_flat(**{"total_episodes": EPISODES, **settings})
        run = runs.create(Path(folder) / "run", config.as_dict(), "ablation")
        runner.train(run)
        table = score_table(PolicyDefender(load(run.path)), Trial(seed=153))
        assert table.total is not None
        return round(table.total.mean, 2)


def main(out: Path) -> None:
    """Train every variant from every seed, and write the totals after each seed."""
    totals: dict[str, list[float]] = {name: [] for name in VARIANTS}
    for seed in SEEDS:
        for name, settings in VARIANTS.items():
            totals[name].append(total_score({**settings, "seed": seed}))
            print(f"seed {seed}, {name}: {totals[name][-1]}", flush=True)
        content = {
            "machine": system_load.describe_machine(),
            "episodes": EPISODES,
            "seeds": SEEDS[: seed + 1],
            "totals": totals,
        }
        out.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

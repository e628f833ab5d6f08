"""What each part of the preset `minutes` buys: trainings without it, five seeds, two processes.

Run it as python -m benchmarks.suites.recipe_ablation benchmarks/results/recipe_ablation.json.
`--episodes` and `--seeds` make it shorter; `--processes` trains so many runs at once. With
`--folder` the run folders are kept there, and a later call resumes those that are not finished.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from cagepool import load, runs
from cagepool.bench import system_load
from cagepool.evaluate import Trial, score_table
from cagepool.train import runner
from cagepool.train.config import TrainConfig
from cagepool.train.presets import preset_settings

GAMES = 2000  # per red agent, in the evaluation
SEED = 20_000  # of the evaluation
VARIANTS: dict[str, dict[str, Any]] = {
    "minutes": {},
    # Without the belief the policy gets the observation and its history instead.
    "without belief": {
        "belief": False,
        "observation": True,
        "scan_memory": True,
        "last_action": True,
    },
    "critic without true state": {"critic_inputs": "same"},
    "without length weights": {"lengths": None, "bootstrap": False},
    "67 actions instead of 33": {"actions": "reduced"},
}


class Options(argparse.Namespace):
    """Command line."""

    out: Path
    folder: Path | None
    episodes: int | None
    seeds: int
    processes: int


def train_variant(name: str, seed: int, episodes: int | None, folder: Path) -> dict[str, Any]:
    """Train a variant in one thread; return its scores and its seconds."""
    preset = TrainConfig.from_dict(preset_settings("minutes"))
    limit = {} if episodes is None else {"total_episodes": episodes}
    config = preset.with_settings(seed=seed, threads=1, **limit, **VARIANTS[name])
    path = folder / name.replace(" ", "-") / f"seed{seed}"
    is_new = not path.exists()
    run = runs.create(path, config.as_dict(), "ablation") if is_new else runs.open_run(path)
    runner.train(run)
    table = score_table(load(path), Trial(episodes=GAMES, seed=SEED))
    assert table.total is not None
    return {
        "variant": name,
        "seed": seed,
        "seconds": round(run.metrics()["seconds"][-1], 1),
        "total": round(table.total.mean, 3),
        "standard_error": round(table.total.standard_error, 3),
        "scores": {
            red: {str(length): round(score.mean, 3) for length, score in row.items()}
            for red, row in table.scores.items()
        },
    }


def train_all(options: Options, folder: Path) -> Iterator[dict[str, Any]]:
    """Train every variant from every seed; yields results as they are ready."""
    jobs = [(name, seed) for name in VARIANTS for seed in range(options.seeds)]
    with ProcessPoolExecutor(options.processes, get_context("spawn")) as pool:
        futures = [pool.submit(train_variant, *job, options.episodes, folder) for job in jobs]
        for future in as_completed(futures):
            yield future.result()


def summary(results: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Totals of each variant by seed, with mean and standard deviation over the seeds."""
    rows: dict[str, dict[str, Any]] = {}
    for name in VARIANTS:
        ready = sorted((r["seed"], r["total"]) for r in results if r["variant"] == name)
        totals = [total for _, total in ready]
        if totals:
            deviation = round(statistics.stdev(totals), 3) if len(totals) > 1 else None
            mean = round(statistics.mean(totals), 3)
            rows[name] = {"totals": totals, "mean": mean, "deviation": deviation}
    return rows


def report(results: list[dict[str, Any]], episodes: int | None) -> dict[str, Any]:
    """What the file holds."""
    return {
        "machine": system_load.describe_machine(),
        "episodes": episodes or preset_settings("minutes")["run"]["total_episodes"],
        "games": GAMES,
        "summary": summary(results),
        "runs": sorted(results, key=lambda r: (r["seed"], r["variant"])),
    }


def main() -> None:
    """Train all variants; the file is written after each of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--episodes", type=int)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(namespace=Options())
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        for result in train_all(options, options.folder or Path(temporary)):
            results.append(result)
            print(f"seed {result['seed']}, {result['variant']}: {result['total']}", flush=True)
            options.out.write_text(json.dumps(report(results, options.episodes), indent=1) + "\n")


if __name__ == "__main__":
    main()

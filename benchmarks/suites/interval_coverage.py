"""Share of simulated studies whose interval holds the truth: ours, and the percentile bootstrap.

Run it as python -m benchmarks.suites.interval_coverage benchmarks/results/interval_coverage.json.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from cagepool import study
from cagepool.bench import system_load
from cagepool.types import Float64s

STUDIES = 2000
RESAMPLES = 2000
SEEDS = (5, 10, 25)
POPULATION = 1_000_000
STATISTICS = (study.iqm, study.mean, study.median)


def draw(kind: str, rng: np.random.Generator, shape: tuple[int, ...]) -> Float64s:
    """Scores of seeds: normal, with a tail of failed seeds, or with heavy tails."""
    if kind == "normal":
        return rng.normal(-60, 4, shape)
    if kind == "skewed":
        return -rng.gamma(8, 4, shape)
    return -60 + 4 * rng.standard_t(5, shape)


def percentile_interval(
    scores: Float64s, statistic: Callable[[ArrayLike], float], rng: np.random.Generator
) -> tuple[float, float]:
    """The percentile bootstrap."""
    drawn = scores[rng.integers(len(scores), size=(RESAMPLES, len(scores)))]
    values = {
        study.iqm: lambda: stats.trim_mean(drawn, 0.25, axis=1),
        study.mean: lambda: drawn.mean(axis=1),
        study.median: lambda: np.median(drawn, axis=1),
    }[statistic]()
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def coverage(kind: str, seeds: int) -> list[dict[str, object]]:
    """Coverage of both intervals for each statistic."""
    rng = np.random.default_rng(1234)
    population = draw(kind, rng, (POPULATION,))
    studies = draw(kind, rng, (STUDIES, seeds))
    rows = []
    for statistic in STATISTICS:
        truth = statistic(population)
        ours = [not study.interval(scores, statistic).excludes(truth) for scores in studies]
        limits = [percentile_interval(scores, statistic, rng) for scores in studies]
        percentile = [low <= truth <= high for low, high in limits]
        row = {"scores": kind, "seeds": seeds, "statistic": statistic.__name__}
        rows.append({**row, "ours": np.mean(ours), "percentile": np.mean(percentile)})
        print(json.dumps(rows[-1]), flush=True)
    return rows


def main(out: Path) -> None:
    """Simulate all combinations and write their coverage."""
    rows = [
        row
        for kind in ("normal", "skewed", "heavy")
        for seeds in SEEDS
        for row in coverage(kind, seeds)
    ]
    machine = system_load.describe_machine()
    out.write_text(
        json.dumps({"machine": machine, "studies": STUDIES, "rows": rows}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))

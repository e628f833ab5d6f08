"""Check the exact belief on many games: python -m benchmarks.belief_check.

Plays random, scripted and trained defenders in both editions, with green and without, and counts
the steps at which the belief gave the true state probability zero, the sizes of the set of
hypotheses, what was dropped, and how often what was believed with some probability was true. The
result is written to benchmarks/results/belief.json; docs/belief.md shows it. `--speed` measures
the cost of a step instead.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cagepool import _core
from cagepool.bench.engine import belief_contenders
from cagepool.bench.measure import Pace, measure_interleaved
from cagepool.policy.load import load
from cagepool.sim import Batch, BatchConfig, BeliefConfig, BeliefFilter
from cagepool.sim.names import action_index, host_index
from cagepool.types import Bools, Float64s, Int64s

RESULT = Path(__file__).parent / "results" / "belief.json"
EDGES = np.array([0.0, 0.01, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 0.99, 1.0])  # of the calibration
CERTAIN = 1e-9  # what is known for sure says nothing about the calibration
CHUNK = 1250  # games that are played together
STEPS = 100
SIZES = ((False, 64), (True, 64), (True, 1024))  # green, and capacity of the filter
BLUES = ("random", "quiet", "scripted", "minutes", "best")
Chooser = Callable[[NDArray[Any]], Int64s]


def chooser(blue: str, edition: str, games: int, rng: np.random.Generator) -> Chooser:
    """Blue's choice of actions by observations."""

    def random(_: NDArray[Any]) -> Int64s:
        actions = rng.integers(0, _core.ACTION_COUNT, games)
        return np.where(rng.random(games) < (1.0 if blue == "random" else 0.2), actions, 0)

    def scripted(observations: NDArray[Any]) -> Int64s:
        """Restore, remove or analyse the host of an exploit, or else any."""
        exploited = observations.reshape(games, -1, 4)[:, :, 1] != 0
        hosts = np.where(exploited.any(1), exploited.argmax(1), rng.integers(1, 13, games))
        verbs = np.array([action_index(f"{v} Defender") for v in ("Restore", "Remove", "Analyse")])
        return verbs[rng.integers(0, 3, games)] + hosts

    if blue in ("random", "quiet"):
        return random
    if blue == "scripted":
        return scripted
    trained = load(f"zoo:{blue}-{edition}" if blue == "best" else f"zoo:{blue}")
    trained.begin(games)
    return lambda observations: trained.act(observations, greedy=False, rng=rng)


class Calibration:
    """How often events of some believed probability happened."""

    def __init__(self) -> None:
        """Start without events."""
        self.sums = np.zeros((len(EDGES) - 1, 3))  # number, believed, true
        self.last: dict[str, Float64s] = {}  # believed a step before, by kind of event

    def add(self, kind: str, believed: Float64s, happened: Bools) -> None:
        """Count events that were neither certain nor impossible.

        An event whose probability did not change since the last step counts once: it is the same
        event.
        """
        last = self.last.get(kind, np.full_like(believed, -1.0))
        self.last[kind] = believed.copy()
        open_events = (believed > CERTAIN) & (believed < 1 - CERTAIN)
        open_events &= abs(believed - last) > CERTAIN
        values, truth = believed[open_events], happened[open_events]
        bins = np.clip(np.searchsorted(EDGES, values, side="right") - 1, 0, len(EDGES) - 2)
        for column, weights in enumerate((None, values, truth.astype(float))):
            self.sums[:, column] += np.bincount(bins, weights, minlength=len(EDGES) - 1)

    def rows(self) -> list[dict[str, float]]:
        """One row per bin that has events."""
        return [
            {
                "from": float(low),
                "to": float(high),
                "events": int(number),
                "believed": round(believed / number, 4),
                "true": round(true / number, 4),
                "standard_error": round(
                    float(np.sqrt(true / number * (1 - true / number) / number)), 4
                ),
            }
            for low, high, (number, believed, true) in zip(
                EDGES, EDGES[1:], self.sums, strict=False
            )
            if number
        ]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Games of one defender."""

    blue: str
    edition: str
    green: bool
    capacity: int
    games: int
    seed: int


def check(cell: Cell, calibration: Calibration) -> dict[str, Any]:
    """Play the games of a cell; returns what was counted."""
    zero = sizes = largest = steps = zero_without_drops = 0
    totals = {"dropped": 0, "dropped_mass": 0.0, "misfits": 0}
    for first in range(0, cell.games, CHUNK):
        count = min(CHUNK, cell.games - first)
        rng = np.random.default_rng([cell.seed, first])
        settings: dict[str, Any] = {"edition": cell.edition, "green": cell.green}
        batch = Batch(
            count, BatchConfig(red="mix", autoreset="disabled", max_steps=STEPS, **settings)
        )
        batch.reset(np.arange(count, dtype=np.uint64) + np.uint64(cell.seed + first))
        belief = BeliefFilter(count, BeliefConfig(capacity=cell.capacity, **settings))
        choose = chooser(cell.blue, cell.edition, count, rng)
        ids = np.arange(count)
        calibration.last.clear()
        others = np.arange(_core.HOST_COUNT) != host_index("User0")
        for _ in range(STEPS):
            actions = choose(batch.observations)
            batch.step(actions)
            belief.update(actions, batch.observations)
            lost = belief.probability_of(ids, batch.save(ids)) <= 0
            zero += int(lost.sum())
            zero_without_drops += int((lost & (belief.dropped["number"] == 0)).sum())
            sizes += int(belief.counts.sum())
            largest = max(largest, int(belief.counts.max()))
            steps += count
            add_events(calibration, belief, batch, others)
        for name in totals:
            totals[name] += getattr(belief.totals, name)
    return {
        **asdict(cell),
        "steps": steps,
        "steps_with_truth_at_zero": zero,
        "of_these_without_drops": zero_without_drops,
        "mean_hypotheses": round(sizes / steps, 3),
        "most_hypotheses": largest,
        "dropped_hypotheses": totals["dropped"],
        "dropped_mass_per_step": totals["dropped_mass"] / steps,
        "steps_without_fit": totals["misfits"],
    }


def add_events(calibration: Calibration, belief: BeliefFilter, batch: Batch, hosts: Bools) -> None:
    """Count red's access to each host, by kind."""
    said, state = belief.probabilities, batch.true_state
    privileged = state["privileged"] > 0
    for name, truth in (
        ("privileged", privileged),
        ("user_seen", (state["user_seen"] > 0) & ~privileged),
        ("user_unseen", (state["user_unseen"] > 0) & ~privileged),
    ):
        calibration.add(name, said[name][:, hosts], truth[:, hosts])


def check_games(games: int) -> Iterator[dict[str, Any]]:
    """Check all defenders; yields the result after each."""
    kinds = list(product(BLUES, ("2.1", "leaderboard"), SIZES))
    calibrations = {False: Calibration(), True: Calibration()}
    rows: list[dict[str, Any]] = []
    count = games // len(kinds)
    for number, (blue, edition, (green, size)) in enumerate(kinds):
        seed = number * 10**6
        cell = Cell(blue=blue, edition=edition, green=green, capacity=size, games=count, seed=seed)
        rows.append(check(cell, calibrations[green]))
        print(json.dumps(rows[-1]), flush=True)
        yield {
            "games": sum(row["games"] for row in rows),
            "rows": rows,
            "calibration": {
                "green off": calibrations[False].rows(),
                "green on": calibrations[True].rows(),
            },
        }


def measure_speed() -> dict[str, Any]:
    """Nanoseconds per game and step, as in `cagepool bench engine`, on an idle machine."""
    measured = measure_interleaved(belief_contenders(), Pace(), lambda: None)
    return {
        "speed": [
            {
                "call": row.name,
                "red": row.settings["red"],
                "green": row.settings["green"],
                "nanoseconds": round(row.nanoseconds_per_step.median),
            }
            for row in measured
        ]
    }


def main() -> None:
    """Check games, or measure the cost, and replace that part of the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=102_000)
    parser.add_argument("--speed", action="store_true", help="measure the cost instead")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    parts = [measure_speed()] if options.speed else check_games(options.games)
    before = json.loads(options.out.read_text()) if options.out.exists() else {}
    for found in parts:
        options.out.write_text(json.dumps(before | found, indent=1) + "\n")


if __name__ == "__main__":
    main()

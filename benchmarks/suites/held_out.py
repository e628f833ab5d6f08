"""Scores on held-out scenarios: entity networks, a padded MLP and scripted defenders.

Run it as python -m benchmarks.suites.held_out benchmarks/results/held_out.json --runs FOLDER. It
plays the runs in that folder on the test scenarios of every suite and on CAGE-2, `--episodes` games
per scenario and red. `--table` prints the table of docs/results.md from the file.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cagepool import load
from cagepool.bench import system_load
from cagepool.evaluate.protocol import BASELINES, TRAINING_SCENARIOS, playable_reds, score_table
from cagepool.evaluate.rollout import Trial, load_scenarios, spread_evenly
from cagepool.evaluate.statistics import ScoreTable
from cagepool.policy.defenders import Defender, scripted_defender
from cagepool.scenarios import CAGE2, Scenario

SUITES = ("users", "images", "links", "layout", "entry", "x3")
SETS = ("cage2", *(f"cage2/{suite}:test" for suite in SUITES))
EPISODES = 20  # per scenario and red agent
SEED = 30_000


def defenders(runs: Path) -> Iterator[tuple[str, str | None, Defender]]:
    """Name, training scenarios and defender of every row."""
    for folder in sorted(path for path in runs.iterdir() if (path / "config.json").is_file()):
        policy = load(folder)
        yield folder.name, policy.scenario or CAGE2.name, policy
    for name in BASELINES:
        yield name, None, scripted_defender(name)


def play(defender: Defender, scenarios: tuple[Scenario, ...], episodes: int) -> ScoreTable | None:
    """Scores on these scenarios; none if the defender has no slots for their hosts."""
    trial = Trial(episodes=episodes, seed=SEED, scenario=scenarios, layout=defender.layout)
    try:
        return score_table(defender, trial, playable_reds(scenarios))
    except ValueError as error:
        if "slot per host" in str(error):
            return None
        raise


def row(what: str, trained: str | None, scenarios: str, scores: ScoreTable) -> dict[str, Any]:
    """One result of the file."""
    rounded = {
        name: None if value is None else round(value, 3)
        for name, value in (
            ("mean", scores.total.mean),
            ("standard_error", scores.total.standard_error),
            ("spread", scores.spread),
        )
    }
    return {
        "defender": what,
        "trained_on": trained,
        "scenarios": scenarios,
        **rounded,
        "cells": {
            red: {str(length): round(score.mean, 3) for length, score in cells.items()}
            for red, cells in scores.scores.items()
        },
        "totals": [round(one.mean, 2) for one in scores.scenario_scores],
    }


def results(runs: Path, episodes: int, only: list[str]) -> Iterator[dict[str, Any]]:
    """Every defender, or those of `only`, on every set, and on scenarios of its training."""
    sets = {name: load_scenarios(name) for name in SETS}
    for name, trained, defender in defenders(runs):
        if only and name not in only:
            continue
        if trained is not None and trained != CAGE2.name:
            own = spread_evenly(load_scenarios(trained), TRAINING_SCENARIOS)
            scores = play(defender, own, episodes)
            assert scores is not None
            yield row(name, trained, "training", scores)
        for set_name, scenarios in sets.items():
            # A single scenario is played as often as a hundred.
            games = episodes * (100 if len(scenarios) == 1 else 1)
            scores = play(defender, scenarios, games)
            if scores is not None:
                yield row(name, trained, set_name, scores)


def table(rows: list[dict[str, Any]]) -> str:
    """Mean ± standard error and spread of every defender on every set, as Markdown."""
    columns = ("training", *SETS)
    heads = (column.removeprefix("cage2/").removesuffix(":test") for column in columns)
    lines = [f"| | {' | '.join(heads)} |", "|---" * (len(columns) + 1) + "|"]
    for name in dict.fromkeys(one["defender"] for one in rows):
        cells = {one["scenarios"]: _cell(one) for one in rows if one["defender"] == name}
        lines.append(f"| {name} | {' | '.join(cells.get(column, '') for column in columns)} |")
    return "\n".join(lines)


def _cell(one: dict[str, Any]) -> str:
    if one["spread"] is None:
        return f"{one['mean']:.1f}"
    return f"{one['mean']:.1f} ± {one['standard_error']:.1f} ({one['spread']:.1f})"


def main() -> None:
    """Play everything; the file is written after each result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of the trainings")
    parser.add_argument("--episodes", type=int, default=EPISODES)
    parser.add_argument("--only", nargs="*", default=[], help="defenders to play again")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if options.table:
        print(table(json.loads(options.out.read_text())["results"]))
        return
    content = {"machine": system_load.describe_machine(), "episodes": options.episodes}
    rows: list[dict[str, Any]] = []
    if options.only and options.out.exists():
        kept = json.loads(options.out.read_text())["results"]
        rows = [one for one in kept if one["defender"] not in options.only]
    for one in results(options.runs, options.episodes, options.only):
        rows.append(one)
        print(f"{one['defender']} on {one['scenarios']}: {_cell(one)}", flush=True)
        options.out.write_text(json.dumps({**content, "results": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

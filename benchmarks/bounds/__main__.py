"""Bounds of the score: floors against B_line, an estimate against Meander, tables of the gap.

Run it as python -m benchmarks.bounds [PART...]. Figures are kept in benchmarks/results/bounds.json;
`tables` rewrites the generated blocks of docs/bounds.md and docs/results.md from that file and from
the evaluations of the zoo.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bounds.check import check_transitions
from benchmarks.bounds.floors import (
    SUM,
    build_graphs,
    floors,
    objectives,
    play_optimal_policy,
    play_policy,
    solve,
)
from benchmarks.bounds.gap import write_tables
from benchmarks.bounds.meander import estimate
from benchmarks.bounds.model import Information
from cagepool.bench.system_load import describe_machine
from cagepool.evaluate import zoo
from cagepool.evaluate.resolve import resolve_policy
from cagepool.sim.names import EDITIONS

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "benchmarks" / "results" / "bounds.json"
DOCUMENTS = (ROOT / "docs" / "bounds.md", ROOT / "docs" / "results.md")
INFORMATION: tuple[Information, ...] = ("full", "observation")
Content = dict[str, Any]


class Options(argparse.Namespace):
    """Command line."""

    parts: list[str]
    games: int
    seeds: int
    episodes: int


def measure_floors(content: Content, _options: Options) -> None:
    """Floors against B_line, and the optimum without decoys on Op_Server0."""
    content["machine"] = describe_machine()
    content["b_line"] = {
        edition: {information: floors(edition, information) for information in INFORMATION}
        for edition in EDITIONS
    }
    content["b_line_without_op_server0_decoys"] = {
        edition: {
            information: floors(edition, information, "none")["floor"]
            for information in INFORMATION
        }
        for edition in EDITIONS
    }


def run_checks(content: Content, options: Options) -> None:
    """Compare the model with the core, and play its optimal policies and the zoo's."""
    content["checks"] = {
        "transitions": {
            edition: {
                information: check_transitions(
                    edition, information, games=options.games, seed=1
                ).as_dict()
                for information in INFORMATION
            }
            for edition in EDITIONS
        },
        "optimal_policy": {
            edition: {
                information: play_optimal_policy(edition, information, games=options.games, seed=2)
                for information in INFORMATION
            }
            for edition in EDITIONS
        },
        "zoo": _play_zoo(options.games),
    }


def _play_zoo(games: int) -> Content:
    """Play every policy of the zoo in the edition that it was trained on."""
    found = {}
    for edition in EDITIONS:
        floor = solve(build_graphs(edition, "observation"), objectives()[SUM]).start.values
        for name in zoo.zoo_names():
            policy = resolve_policy(name)
            if policy.edition() == edition:
                found[name] = play_policy(policy.defender, floor, edition=edition, games=games)
    return found


def estimate_meander(content: Content, options: Options) -> None:
    """Train on the true state against Meander and evaluate the best policy."""
    for edition in EDITIONS:
        content.setdefault("meander", {})[edition] = estimate(
            edition, seeds=options.seeds, episodes=options.episodes
        )


def rewrite_tables(content: Content, _options: Options) -> None:
    """Rewrite the generated blocks of the documents."""
    for path in write_tables(content, DOCUMENTS):
        print(path)


PARTS: dict[str, Callable[[Content, Options], None]] = {
    "floors": measure_floors,
    "checks": run_checks,
    "meander": estimate_meander,
    "tables": rewrite_tables,
}


def parse(arguments: list[str] | None = None) -> Options:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bounds", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="none: all")
    parser.add_argument("--games", type=int, default=4000, help="games per check")
    parser.add_argument("--seeds", type=int, default=1, help="trainings per edition, Meander")
    parser.add_argument("--episodes", type=int, default=64_000, help="per training, Meander")
    return parser.parse_args(arguments, Options())


def main(options: Options) -> None:
    """Run the parts and update the result file after each."""
    content = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    for name in options.parts or PARTS:
        PARTS[name](content, options)
        RESULT.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    np.seterr(all="raise")
    main(parse())

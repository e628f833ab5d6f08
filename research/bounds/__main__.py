"""Bounds of the score: floors against B_line, an estimate against Meander, tables of the gap.

Run it as python -m research.bounds [PART...]. Figures are kept in research/bounds/bounds.json;
`tables` rewrites the generated blocks of docs/bounds.md from that file and from
the evaluations of the zoo.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cagepool.bench.system_load import describe_machine
from cagepool.policy.load import load, zoo_names
from cagepool.sim.names import EDITIONS
from research.bounds.check import check_transitions
from research.bounds.floors import (
    SUM,
    build_graphs,
    floors,
    objectives,
    play_optimal_policy,
    play_policy,
    solve,
)
from research.bounds.gap import write_tables
from research.bounds.meander import MeanderConfig, train_and_score
from research.bounds.model import Information

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "research" / "bounds" / "bounds.json"
DOCUMENTS = (ROOT / "docs" / "bounds.md",)
INFORMATION: tuple[Information, ...] = ("full", "observation")
Content = dict[str, Any]


class Options(argparse.Namespace):
    """Command line."""

    parts: list[str]
    games: int
    edition: list[str]
    seed: int
    episodes: int


def measure_floors(_options: Options) -> Content:
    """Floors against B_line, and the optimum without decoys on Op_Server0."""
    return {
        "machine": describe_machine(),
        "b_line": _by_game(floors),
        "b_line_without_op_server0_decoys": _by_game(
            lambda edition, information: floors(edition, information, "none")["floor"]
        ),
    }


def run_checks(options: Options) -> Content:
    """Compare the model with the core, and play its optimal policies and the zoo's."""
    games = options.games

    def transitions(edition: str, information: Information) -> Content:
        return check_transitions(edition, information, games=games, seed=1).as_dict()

    def optimal_policy(edition: str, information: Information) -> Content:
        return play_optimal_policy(edition, information, games=games, seed=2)

    checks = {
        "transitions": _by_game(transitions),
        "optimal_policy": _by_game(optimal_policy),
        "zoo": _play_zoo(games),
    }
    return {"checks": checks}


def _by_game(measure: Callable[[str, Information], Any]) -> Content:
    """Figures by edition and information."""
    return {
        edition: {information: measure(edition, information) for information in INFORMATION}
        for edition in EDITIONS
    }


def _play_zoo(games: int) -> Content:
    """Play every policy of the zoo in the edition that it was trained on."""
    found = {}
    for edition in EDITIONS:
        floor = solve(build_graphs(edition, "observation"), objectives()[SUM]).start.values
        for name in zoo_names():
            policy = load(name)
            if policy.edition == edition:
                found[name] = play_policy(policy, floor, edition=edition, games=games)
    return found


def estimate_meander(options: Options) -> Content:
    """Train on the true state against Meander; replaces the run of the same edition and seed."""
    runs = {}
    for edition in options.edition:
        config = MeanderConfig(edition=edition, seed=options.seed, episodes=options.episodes)
        runs[edition] = train_and_score(config)
    found = _read_result().get("meander", {})  # other editions may have been trained meanwhile
    for edition, run in runs.items():
        others = [other for other in found.get(edition, []) if other["seed"] != run["seed"]]
        found[edition] = sorted([*others, run], key=lambda one: int(one["seed"]))
    return {"meander": found}


def rewrite_tables(_options: Options) -> Content:
    """Rewrite the generated blocks of the documents."""
    for path in write_tables(_read_result(), DOCUMENTS):
        print(path)
    return {}


PARTS: dict[str, Callable[[Options], Content]] = {
    "floors": measure_floors,
    "checks": run_checks,
    "meander": estimate_meander,
    "tables": rewrite_tables,
}


def parse(arguments: list[str] | None = None) -> Options:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m research.bounds", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="none: all")
    parser.add_argument("--games", type=int, default=4000, help="games per check")
    parser.add_argument(
        "--edition", nargs="+", choices=EDITIONS, default=[*EDITIONS], help="Meander"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the training, Meander")
    parser.add_argument("--episodes", type=int, default=64_000, help="of the training, Meander")
    return parser.parse_args(arguments, Options())


def main(options: Options) -> None:
    """Run the parts and update the result file after each."""
    for name in options.parts or PARTS:
        update = PARTS[name](options)
        RESULT.write_text(json.dumps({**_read_result(), **update}, indent=1) + "\n")


def _read_result() -> Content:
    content: Content = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    return content


if __name__ == "__main__":
    main(parse())

"""`cagepool evaluate`: evaluate a policy or a scripted defender by the official protocol."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import msgspec
from rich.console import Console
from tyro.conf import Positional, arg

from cagepool import runs
from cagepool.cli.args import (
    BLUE_HELP,
    EDITION_HELP,
    NETWORK_HELP,
    NO_DEFAULT,
    TRUST_PICKLE_HELP,
    resolve_blue,
)
from cagepool.cli.display import CommandConsole, progress_bars
from cagepool.cli.evaluate_networks import print_networks
from cagepool.cli.tables import ReferenceScores, figures_table, format_score, print_scores
from cagepool.cyborg import VARIABLE, CybORGNotFoundError
from cagepool.cyborg.engine import CybORGEngine
from cagepool.evaluate import network_scores, protocol
from cagepool.evaluate.baselines import PUBLISHED
from cagepool.evaluate.game_log import record_games, record_network_games
from cagepool.evaluate.network_evaluation import evaluate_networks
from cagepool.evaluate.protocol import Evaluation
from cagepool.evaluate.resolve import ResolvedPolicy
from cagepool.evaluate.reward_breakdown import CAUSES
from cagepool.evaluate.rollout import Engine, NativeEngine, Trial
from cagepool.sim.names import OFFICIAL_REDS
from cagepool.train.config import Edition

PUBLISHED_ROWS = 3  # the best published results
EPISODES = {"native": protocol.EPISODES, "cyborg": 100}  # CybORG plays a few games per second


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """Evaluate a defender by the official protocol, beside published scores.

    The protocol has nine cells: 30, 50 and 100 steps against three red agents. The result of a run
    is written to its folder.
    """

    blue: Annotated[Positional[str], arg(metavar="DEFENDER", help=BLUE_HELP)]
    episodes: Annotated[int | None, NO_DEFAULT] = None
    """Games per red agent. Default: 1000 native games, or 100 games in CybORG. With --scenario: per
    network and red agent, 20."""
    env: Literal["native", "cyborg"] = "native"
    """Simulator. Scores in CybORG are compared with those of at least 1000 native games."""
    scenario: Annotated[str | None, NO_DEFAULT] = None
    """Networks to play instead of that of CAGE-2: a YAML file, a folder of them, or a suite such as
    cage2/users:test; several are joined by commas. Prints a table over networks."""
    edition: Annotated[Edition | None, arg(help=EDITION_HELP), NO_DEFAULT] = None
    which: Literal["best", "last"] = "best"
    """Checkpoint: the best in the evaluations during training, or the last one."""
    seed: int = protocol.SEED
    """Random seed of the games. Training uses other games, whatever the seed."""
    checkout: Annotated[
        str | None,
        arg(help=f"Folder of CybORG. Default: {VARIABLE}, else the installed package."),
        NO_DEFAULT,
    ] = None
    network: Annotated[str | None, arg(help=NETWORK_HELP), NO_DEFAULT] = None
    trust_pickle: Annotated[bool, arg(help=TRUST_PICKLE_HELP)] = False
    json: bool = False
    """Print JSON instead of tables."""


def evaluate(command: Evaluate) -> None:
    """Evaluate a defender, print its scores, and write them to its run folder."""
    blue = resolve_blue(
        command.blue, command.which, trust_pickle=command.trust_pickle, network=command.network
    )
    engine = _make_engine(command)
    if command.scenario is not None:
        _evaluate_networks(command, blue, engine)
        return
    trial = Trial(
        episodes=EPISODES[command.env] if command.episodes is None else command.episodes,
        edition=blue.edition(command.edition),
        seed=command.seed,
        order=blue.order,
        knowledge=blue.knowledge,
        definition=blue.definition,
    )
    result = _play_protocol(blue, trial, engine)
    native = None
    if command.env != "native":
        episodes = max(trial.episodes, EPISODES["native"])
        native = _play_protocol(blue, replace(trial, episodes=episodes), NativeEngine())
    console = CommandConsole()
    if command.json:
        console.out(runs.to_json(result.to_file(native), indent=2))
    else:
        _print(console, result, native)
    if blue.run is not None:
        names = runs.write_evaluation(
            blue.run,
            result.to_file(native),
            record_games(trial, result.statistics) if native is None else None,
            is_last=command.which == "last",
        )
        if not command.json:
            console.print(f"written to {blue.run}: {', '.join(names)}", soft_wrap=True)


def _evaluate_networks(command: Evaluate, blue: ResolvedPolicy, engine: Engine) -> None:
    """Evaluate a defender on other networks, print its scores, and write them to its run folder."""
    assert command.scenario is not None
    trial = Trial(
        episodes=network_scores.EPISODES if command.episodes is None else command.episodes,
        edition=blue.edition(command.edition),
        seed=command.seed,
    )
    with progress_bars() as progress:
        bar = progress.add_task(f"playing, {engine.name}", total=None)
        result = evaluate_networks(
            blue, command.scenario, trial, engine, lambda games: progress.advance(bar, games)
        )
    console = CommandConsole()
    if command.json:
        console.out(runs.to_json(result.to_file(), indent=2))
    else:
        print_networks(console, result)
    if blue.run is not None:
        is_last = command.which == "last"
        names = [runs.write_scenario_evaluation(blue.run, result.to_file(), is_last=is_last)]
        if blue.scenario is not None and command.env == "native" and not is_last:
            # The games of a policy for CAGE-2 are those of the official protocol.
            games = record_network_games(blue.defender, result.trial, result.scores)
            names.append(runs.write_games(blue.run, games))
        if not command.json:
            console.print(f"written to {blue.run}: {', '.join(names)}", soft_wrap=True)


def _make_engine(command: Evaluate) -> Engine:
    if command.env == "native":
        return NativeEngine()
    try:
        return CybORGEngine(command.checkout)
    except CybORGNotFoundError as error:
        raise ValueError(str(error)) from None


def _play_protocol(blue: ResolvedPolicy, trial: Trial, engine: Engine) -> Evaluation:
    with progress_bars() as progress:
        bar = progress.add_task(
            f"playing, {engine.name}", total=trial.episodes * len(OFFICIAL_REDS)
        )
        return protocol.evaluate(blue, trial, engine, lambda games: progress.advance(bar, games))


def _print(console: Console, result: Evaluation, native: Evaluation | None) -> None:
    blue, trial = result.policy, result.trial
    name = f"{blue.name} ({blue.checkpoint})" if blue.checkpoint else blue.name
    references = [*_published_scores(trial.edition)]
    if native:
        name += " in CybORG"
        references = [*_native_scores(result, native), *references]
    print_scores(console, name, result.table, references)
    if blue.trained_on not in (None, trial.edition):
        console.print(f"The policy was trained on another edition, {blue.trained_on}.")
    if blue.reward is not None:
        console.print(
            f"The policy was trained with the reward function {blue.reward}; scores are of the "
            "official reward."
        )
    console.print()
    _print_loss(console, result)
    _print_compliance(console, result)


def _published_scores(edition: str) -> Iterator[ReferenceScores]:
    for row in PUBLISHED[edition][:PUBLISHED_ROWS]:
        cells = {
            red: {length: f"{mean:.2f}" for length, mean in means.items()}
            for red, means in row.cells.items()
        }
        yield ReferenceScores(row.name, cells, f"{row.total:.2f} ({row.how})")


def _native_scores(result: Evaluation, native: Evaluation) -> Iterator[ReferenceScores]:
    table = native.table
    assert table.total
    cells = {
        red: {length: format_score(score) for length, score in scores.items()}
        for red, scores in table.scores.items()
    }
    yield ReferenceScores(
        "native", cells, f"{format_score(table.total)}, {table.trial.episodes} episodes"
    )
    differences = protocol.score_differences(result.table, table)
    errors = {
        red: {length: f"{error:+.1f} s.e." for length, error in row.items()}
        for red, row in differences.cells.items()
    }
    yield ReferenceScores("difference", errors, f"{differences.total:+.1f} standard errors")


def _print_loss(console: Console, result: Evaluation) -> None:
    console.print(f"mean loss per episode of {result.trial.max_steps} steps, by cause")
    table = figures_table(console, "red", [cause.replace("_", " ") for cause in CAUSES])
    for red, games in result.statistics.items():
        table.add_row(red, *(f"{loss:.2f}" for loss in games.mean_loss().values()))
    console.print(table)


def _print_compliance(console: Console, result: Evaluation) -> None:
    if result.trial.order is None:
        return
    units = "decisions and wasted fixes per episode"
    console.print(f"compliance with the order {result.trial.order}; {units}")
    columns = ("compliance", "coverage", "decisions", "wasted fixes")
    table = figures_table(console, "red", columns)
    for red, games in result.statistics.items():
        values = msgspec.structs.astuple(found) if (found := games.compliance()) else ()
        table.add_row(red, *("-" if x is None else f"{x:.3f}" for x in values))
    console.print(table)

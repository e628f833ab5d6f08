"""`cagepool evaluate`: evaluate a policy or a scripted defender on scenarios."""

from collections.abc import Iterator
from dataclasses import dataclass
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
from cagepool.cli.display import (
    CommandConsole,
    ReferenceScores,
    figures_table,
    format_score,
    print_scores,
    progress_bars,
)
from cagepool.cyborg import VARIABLE, CybORGNotFoundError
from cagepool.evaluate import protocol
from cagepool.evaluate.baselines import PUBLISHED
from cagepool.evaluate.game_log import record_games
from cagepool.evaluate.protocol import Evaluation
from cagepool.evaluate.rollout import (
    Engine,
    NativeEngine,
    Trial,
    load_scenarios,
    spread_evenly,
)
from cagepool.evaluate.statistics import CAUSES, ScoreTable, score_differences
from cagepool.parity.engine import CybORGEngine
from cagepool.scenarios import CAGE2
from cagepool.sim.names import OFFICIAL_REDS
from cagepool.sim.settings import Edition

PUBLISHED_ROWS = 3  # the best published results
SHOWN_SCENARIOS = 3  # worst and best ones
EPISODES = {"native": protocol.EPISODES, "cyborg": 100}  # CybORG plays a few games per second


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """Evaluate a defender, in CAGE-2 by the official protocol, beside published scores.

    The protocol has nine cells: 30, 50 and 100 steps against three red agents. The result of a run
    is written to its folder.
    """

    blue: Annotated[Positional[str], arg(metavar="DEFENDER", help=BLUE_HELP)]
    episodes: Annotated[int | None, NO_DEFAULT] = None
    """Games per scenario and red agent. Default: 1000 native games, or 100 games in CybORG; 20 if
    there are several scenarios."""
    env: Literal["native", "cyborg"] = "native"
    """Simulator. Scores in CybORG are compared with those of at least 1000 native games."""
    scenario: Annotated[str | None, NO_DEFAULT] = None
    """Scenarios: cage2, a YAML file, a folder of them, or a suite such as cage2/users:test; several
    are joined by commas. Default: those of the training, else cage2."""
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
    scenario = command.scenario or blue.scenario or CAGE2.name
    scenarios = load_scenarios(scenario)
    if command.scenario is None:
        scenarios = spread_evenly(scenarios, protocol.TRAINING_SCENARIOS)
    trial = Trial(
        episodes=_episodes(command, len(scenarios)),
        edition=command.edition or blue.edition,
        seed=command.seed,
        scenario=scenarios,
        order=blue.order,
        knowledge=blue.knowledge,
        definition=blue.definition,
    )
    engine = _make_engine(command)
    with progress_bars() as progress:
        is_alone = scenarios == (CAGE2,) and command.env == "native"  # without references
        games = trial.episodes * len(OFFICIAL_REDS) if is_alone else None
        bar = progress.add_task(f"playing, {engine.name}", total=games)
        result = protocol.evaluate(
            blue,
            trial,
            engine,
            lambda games: progress.advance(bar, games),
            label=protocol.scenario_label(scenario),
            references=True,
        )
    console = CommandConsole()
    if command.json:
        console.out(runs.to_json(result.to_file(), indent=2))
    else:
        _print(console, result)
    if blue.run is not None:
        names = runs.write_evaluation(
            blue.run,
            result.to_file(),
            record_games(result.trial, result.statistics) if command.env == "native" else None,
            is_last=command.which == "last",
        )
        if not command.json:
            console.print(f"written to {blue.run}: {', '.join(names)}", soft_wrap=True)


def _episodes(command: Evaluate, scenarios: int) -> int:
    if command.episodes is not None:
        return command.episodes
    return EPISODES[command.env] if scenarios == 1 else protocol.EPISODES_PER_SCENARIO


def _make_engine(command: Evaluate) -> Engine:
    if command.env == "native":
        return NativeEngine()
    try:
        return CybORGEngine(command.checkout)
    except CybORGNotFoundError as error:
        raise ValueError(str(error)) from None


def _print(console: Console, result: Evaluation) -> None:
    blue, trial = result.policy, result.trial
    name = f"{blue.name} ({blue.checkpoint})" if blue.checkpoint else blue.name
    name += "" if result.table.is_official else f" on {result.scenario}"
    name += "" if result.native is None else " in CybORG"
    print_scores(console, name, result.table, [*_references(result)])
    if result.gap is not None:
        console.print(f"gap to the scenarios of the training: {result.gap:+.2f}")
    ranked = sorted((score.mean, score.name) for score in result.table.scenario_scores)
    if len(ranked) > 2 * SHOWN_SCENARIOS:
        for which, some in (
            ("worst", ranked[:SHOWN_SCENARIOS]),
            ("best", ranked[-SHOWN_SCENARIOS:]),
        ):
            shown = ", ".join(f"{scenario} {total:.2f}" for total, scenario in some)
            console.print(f"{which}: {shown}", soft_wrap=True)
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


def _references(result: Evaluation) -> Iterator[ReferenceScores]:
    """Native games, scenarios of the training, scripted defenders, published results."""
    if result.native is not None:
        yield _reference("native", result.native)
        differences = score_differences(result.table, result.native)
        errors = {
            red: {length: f"{error:+.1f} s.e." for length, error in row.items()}
            for red, row in differences.cells.items()
        }
        yield ReferenceScores("difference", errors, f"{differences.total:+.1f} standard errors")
    if result.training is not None:
        count = len(result.training.trial.scenarios)
        yield _reference(f"in training ({count})", result.training)
    for name, table in result.baselines.items():
        yield _reference(name, table)
    if result.table.is_official:
        yield from _published_scores(result.trial.edition)


def _reference(name: str, table: ScoreTable) -> ReferenceScores:
    cells = {
        red: {length: format_score(score) for length, score in scores.items()}
        for red, scores in table.scores.items()
    }
    total = f"{format_score(table.total)}, {table.trial.episodes} episodes"
    return ReferenceScores(name, cells, total)


def _published_scores(edition: str) -> Iterator[ReferenceScores]:
    for row in PUBLISHED[edition][:PUBLISHED_ROWS]:
        cells = {
            red: {length: f"{mean:.2f}" for length, mean in means.items()}
            for red, means in row.cells.items()
        }
        yield ReferenceScores(row.name, cells, f"{row.total:.2f} ({row.how})")


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

"""`cagepool evaluate`: a policy or a scripted defender by the official protocol."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, arg

from cagepool import runs
from cagepool.cli.args import resolve_blue
from cagepool.cli.display import CommandConsole, progress_bars
from cagepool.cli.tables import ReferenceScores, format_score, print_scores
from cagepool.cyborg import VARIABLE, CybORGNotFoundError
from cagepool.cyborg.engine import CybORGEngine
from cagepool.evaluate import protocol
from cagepool.evaluate.baselines import PUBLISHED
from cagepool.evaluate.defenders import SCRIPTED
from cagepool.evaluate.game_log import record_games
from cagepool.evaluate.protocol import Evaluation
from cagepool.evaluate.resolve import ResolvedPolicy
from cagepool.evaluate.reward_breakdown import CAUSES
from cagepool.evaluate.rollout import Engine, NativeEngine, Trial
from cagepool.sim.names import OFFICIAL_REDS

SHOWN = 3  # published results that are printed, the best ones
EPISODES = {"native": protocol.EPISODES, "cyborg": 100}  # CybORG plays a few games a second


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """Play 30, 50 and 100 steps against three reds, and compare with what others have scored."""

    blue: Annotated[
        Positional[str],
        arg(
            metavar="RUN|NAME",
            help=f"A run folder, a checkpoint of RLlib, or one of {', '.join(SCRIPTED)}.",
        ),
    ]
    episodes: int | None = None
    """Games against each red: 1000, or 100 in CybORG, which is slow."""
    env: Literal["native", "cyborg"] = "native"
    """Who plays the games; what CybORG gives is compared with 1000 native games or more."""
    edition: str | None = None
    """2.1 or leaderboard; by default that on which the run was trained, or 2.1."""
    which: Literal["best", "last"] = "best"
    """The policy that did best in the checks during training, or the last one."""
    seed: int = protocol.SEED
    """Decides all luck; no seed plays games of the training."""
    checkout: Annotated[
        str | None, arg(help=f"Folder of CybORG, if neither {VARIABLE} names it nor pip has it.")
    ] = None
    json: bool = False
    """Print JSON instead of tables."""


def evaluate(command: Evaluate) -> None:
    """Evaluate, print what came of it, and write it into the run folder."""
    blue = resolve_blue(command.blue, command.which)
    engine = _engine(command)
    trial = Trial(
        episodes=EPISODES[command.env] if command.episodes is None else command.episodes,
        edition=blue.edition(command.edition),
        seed=command.seed,
        order=blue.order,
        knowledge=blue.knowledge,
        definition=blue.definition,
    )
    result = _played(blue, trial, engine)
    native = None
    if command.env != "native":
        more = replace(trial, episodes=max(trial.episodes, EPISODES["native"]))
        native = _played(blue, more, NativeEngine())
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


def _engine(command: Evaluate) -> Engine:
    if command.env == "native":
        return NativeEngine()
    try:
        return CybORGEngine(command.checkout)
    except CybORGNotFoundError as error:
        raise ValueError(str(error)) from None


def _played(blue: ResolvedPolicy, trial: Trial, engine: Engine) -> Evaluation:
    with progress_bars() as progress:
        bar = progress.add_task(
            f"playing, {engine.name}", total=trial.episodes * len(OFFICIAL_REDS)
        )
        return protocol.evaluate(blue, trial, engine, lambda games: progress.advance(bar, games))


def _print(console: Console, result: Evaluation, native: Evaluation | None) -> None:
    blue, trial = result.policy, result.trial
    who = f"{blue.name} ({blue.checkpoint})" if blue.checkpoint else blue.name
    beside = [*_published(trial.edition)]
    if native:
        who += " in CybORG"
        beside = [*_compared(result, native), *beside]
    print_scores(console, who, result.table, beside)
    if blue.trained_on not in (None, trial.edition):
        console.print(f"It was trained on edition {blue.trained_on}, which is another game.")
    console.print()
    _print_loss(console, result)
    _print_compliance(console, result)


def _published(edition: str) -> Iterator[ReferenceScores]:
    for row in PUBLISHED[edition][:SHOWN]:
        cells = {
            red: {length: f"{mean:.2f}" for length, mean in means.items()}
            for red, means in row.cells.items()
        }
        yield ReferenceScores(row.name, cells, f"{row.total:.2f} ({row.how})")


def _compared(result: Evaluation, native: Evaluation) -> Iterator[ReferenceScores]:
    table = native.table
    assert table.total
    cells = {
        red: {length: format_score(score) for length, score in scores.items()}
        for red, scores in table.scores.items()
    }
    yield ReferenceScores(
        "native", cells, f"{format_score(table.total)}, {table.trial.episodes} episodes"
    )
    apart = protocol.score_differences(result.table, table)
    errors = {
        red: {length: f"{error:+.1f} s.e." for length, error in row.items()}
        for red, row in apart.cells.items()
    }
    yield ReferenceScores("difference", errors, f"{apart.total:+.1f} standard errors")


def _print_loss(console: Console, result: Evaluation) -> None:
    console.print(f"where the loss goes, mean of {result.trial.max_steps} steps")
    table = Table("red", box=box.SIMPLE_HEAD)
    for part in CAUSES:
        table.add_column(part.replace("_", " "), justify="right")
    for red, games in result.statistics.items():
        table.add_row(red, *(f"{loss:.2f}" for loss in games.mean_loss().values()))
    console.print(table)


def _print_compliance(console: Console, result: Evaluation) -> None:
    if result.trial.order is None:
        return
    console.print(f"keeping the order {result.trial.order}")
    table = Table("red", box=box.SIMPLE_HEAD)
    for name in ("compliance", "coverage", "decisions", "wasted fixes"):
        table.add_column(name, justify="right")
    for red, games in result.statistics.items():
        values = msgspec.structs.astuple(found) if (found := games.compliance()) else ()
        table.add_row(red, *("-" if x is None else f"{x:.3f}" for x in values))
    console.print(table)

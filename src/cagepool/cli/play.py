"""`cagepool play`: print the scores of a defender and, with --verbose, one game per red agent."""

import json
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import msgspec
from rich.console import Console
from tyro.conf import arg

from cagepool import evaluate
from cagepool.cli.args import (
    BLUE_HELP,
    EDITION_HELP,
    NETWORK_HELP,
    NO_DEFAULT,
    RED_LIST,
    TRUST_PICKLE_HELP,
    resolve_blue,
)
from cagepool.cli.display import CommandConsole, print_scores, progress_bars
from cagepool.evaluate.game_log import TranscriptTurn, transcript
from cagepool.evaluate.protocol import official_red_names
from cagepool.evaluate.rollout import Trial
from cagepool.evaluate.statistics import ScoreTable
from cagepool.policy.defenders import Defender
from cagepool.sim.names import OFFICIAL_REDS, RED_ALIASES
from cagepool.sim.settings import Edition

TURN_FORMAT = "{:>3} {:<27} {:<2} {:<35} {:<2} {:>6}"  # 80 columns with the longest names
INDENT = " " * 4
UNBROKEN = "\N{NO-BREAK SPACE}"
SUCCESS = {True: "ok", False: "no", None: "-"}
LEGEND = """\
Blue sees two bits of activity (10 scan, 11 exploit) and two of compromise
(10 unknown, 01 user, 11 privileged) for every host where any is set."""


@dataclass(frozen=True, kw_only=True)
class Play:
    """Play a defender against red agents and print its mean total reward ± standard error."""

    red: Annotated[
        tuple[str, ...],
        arg(
            metavar=RED_LIST,
            help=f"Red agents, one or more of {', '.join((*OFFICIAL_REDS, *RED_ALIASES))}.",
        ),
    ] = OFFICIAL_REDS
    blue: Annotated[str, arg(help=BLUE_HELP)] = "react-restore"
    episodes: int = Trial.episodes
    """Games per red agent."""
    edition: Annotated[Edition | None, arg(help=EDITION_HELP), NO_DEFAULT] = None
    green: bool = Trial.green
    """Add GreenAgent, which scans hosts."""
    seed: int = Trial.seed
    """Random seed of the games."""
    max_steps: int = Trial.max_steps
    """Steps per game. The table has the scores after 30, 50, 100 and all steps."""
    network: Annotated[str | None, arg(help=NETWORK_HELP), NO_DEFAULT] = None
    trust_pickle: Annotated[bool, arg(help=TRUST_PICKLE_HELP)] = False
    json: bool = False
    """Print JSON instead of a table."""
    verbose: bool = False
    """Print the first game against each red agent, step by step, before the table."""


def play(command: Play) -> None:
    """Play the games and print the scores."""
    blue = resolve_blue(command.blue, trust_pickle=command.trust_pickle, network=command.network)
    reds = official_red_names(command.red)
    trial = Trial(
        episodes=command.episodes,
        max_steps=command.max_steps,
        edition=command.edition or blue.edition,
        green=command.green,
        seed=command.seed,
    )
    table = _play_games(blue, trial, reds)
    games = {red: transcript(blue, trial, red) for red in reds} if command.verbose else {}
    console = CommandConsole()
    if command.json:
        scores = msgspec.to_builtins(table.to_record())
        result = {"blue": command.blue, **scores, "games": msgspec.to_builtins(games)}
        console.out(json.dumps(result, indent=2))
        return
    for red, game in games.items():
        heading = f"{command.blue} against {red}, edition {trial.edition}"
        console.print(heading, style="bold", soft_wrap=True)
        _print_game(console, game)
    print_scores(console, command.blue, table)


def _play_games(defender: Defender, trial: Trial, reds: tuple[str, ...]) -> ScoreTable:
    with progress_bars() as progress:
        bar = progress.add_task("playing", total=trial.episodes * len(reds))
        return evaluate.score_table(
            defender, trial, reds, lambda games: progress.advance(bar, games)
        )


def _print_game(console: Console, game: list[TranscriptTurn]) -> None:
    console.print(LEGEND)
    console.print(TURN_FORMAT.format("t", "blue", "ok", "red", "ok", "reward"), style="bold")
    for turn in game:
        console.print(_move_line(turn))
        if details := "; ".join(_details(turn)):
            lines = textwrap.fill(details, console.width - len(INDENT)).replace(UNBROKEN, " ")
            console.print(textwrap.indent(lines, INDENT), style="dim")
    console.print(f"total reward: {sum(turn.reward for turn in game):.1f}\n")


def _move_line(turn: TranscriptTurn) -> str:
    blue = (turn.blue, SUCCESS[turn.blue_success])
    red = (turn.red, SUCCESS[turn.red_success])
    return TURN_FORMAT.format(turn.step, *blue, *red, f"{turn.reward:.1f}")


def _details(turn: TranscriptTurn) -> Iterator[str]:
    """Green action, exploit and observation of a turn, where there are any."""
    if turn.green:
        yield f"green scans {turn.green}"
    if turn.exploit:
        detection = {True: ", detected", False: ", undetected", None: ""}[turn.detected]
        yield f"by {turn.exploit}{detection}"
    if turn.observation:
        groups = (" ".join(group).replace(" ", UNBROKEN) for group in turn.observation.items())
        yield f"blue sees {', '.join(groups)}"

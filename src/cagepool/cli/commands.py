"""The commands; a new one is a dataclass and a function in a file of its own, named here."""

from collections.abc import Callable, Sequence
from typing import Any

import tyro

from cagepool.cli.args import FLAGS
from cagepool.cli.bench import Bench, bench
from cagepool.cli.evaluate import Evaluate, evaluate
from cagepool.cli.parity import Parity, parity
from cagepool.cli.play import Play, play
from cagepool.cli.profile import Profile, profile, with_hyphens
from cagepool.cli.report import Report, report
from cagepool.cli.runs import Runs, runs
from cagepool.cli.search import Search, parse_search, search
from cagepool.cli.train import Train, train
from cagepool.cli.train import parsed as parsed_train

COMMANDS: dict[type[Any], Callable[[Any], None]] = {
    Train: train,
    Search: search,
    Play: play,
    Evaluate: evaluate,
    Report: report,
    Runs: runs,
    Bench: bench,
    Profile: profile,
    Parity: parity,
}


def run(arguments: Sequence[str]) -> None:
    """Parse the arguments and run the command that they name.

    Raises:
        SystemExit: they cannot be parsed, or ask for help.
        ValueError: a setting is not one that the command knows.
    """
    command: Any
    if arguments[:1] == ["train"]:
        command = parsed_train(arguments[1:])
    elif arguments[:1] == ["search"]:
        command = parse_search(arguments[1:])
    else:
        command = _parsed(with_hyphens(arguments))
    COMMANDS[type(command)](command)


def _parsed(arguments: Sequence[str]) -> Any:
    return tyro.extras.subcommand_cli_from_dict(
        {settings.__name__.lower(): settings for settings in COMMANDS},
        prog="cagepool",
        description="CAGE Challenge 2, exact and natively fast. --version prints the version.",
        args=arguments,
        config=FLAGS,
    )

"""The commands; a new one is a dataclass and a function in a file of its own, named here."""

from collections.abc import Callable, Sequence
from typing import Any

import tyro

from cagepool.cli.bench import Bench, bench
from cagepool.cli.parity import Parity, parity
from cagepool.cli.play import Play, play

COMMANDS: dict[type[Any], Callable[[Any], None]] = {Play: play, Bench: bench, Parity: parity}


def run(arguments: Sequence[str]) -> None:
    """Parse the arguments and run the command that they name.

    Raises:
        SystemExit: they cannot be parsed, or ask for help.
        ValueError: a setting is not one that the command knows.
    """
    command = tyro.extras.subcommand_cli_from_dict(
        {settings.__name__.lower(): settings for settings in COMMANDS},
        prog="cagepool",
        description="CAGE Challenge 2, exact and natively fast. --version prints the version.",
        args=arguments,
        config=(tyro.conf.FlagCreatePairsOff,),
    )
    COMMANDS[type(command)](command)

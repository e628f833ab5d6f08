"""Entry point of the `cagepool` command: list of commands, exit codes, errors as one sentence."""

import io
import os
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

from cagepool import _optional
from cagepool._lookup import suggestion
from cagepool.cli import EXIT_BROKEN_PIPE, EXIT_FAILURE, EXIT_INTERRUPT, EXIT_USAGE, printable


def main() -> None:
    """Run the command named on the command line, and exit."""
    try:
        try:
            code = run(sys.argv[1:])
        finally:
            print(end="", flush=True)
    except BrokenPipeError:
        # Python flushes stdout again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = EXIT_BROKEN_PIPE
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run a command.

    Returns:
        The exit code.
    """
    if arguments == ["--version"]:
        print(f"cagepool {metadata.version('cagepool')}")
        return 0
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Print a table even if the encoding of the terminal has no ±.
        sys.stdout.reconfigure(errors="replace")
    try:
        if [*arguments] == ["doctor"]:
            _diagnose()
        else:
            with _optional.require("the command line", "cli", "tyro", "rich"):
                _run_command(arguments)
    except KeyboardInterrupt:
        return EXIT_INTERRUPT
    except BrokenPipeError:
        return EXIT_BROKEN_PIPE
    except ValueError as error:
        return _report_error(error, EXIT_USAGE)
    except OSError as error:
        return _report_error(error, EXIT_FAILURE)
    return 0


def load_commands() -> dict[str, tuple[type[Any], Callable[[Any], None]]]:
    """All commands by name: a dataclass with the flags, and the function that it is passed to.

    A new command is a module with both, listed here.
    """
    # Imported here because these modules need tyro and Rich.
    from cagepool.cli import (  # noqa: PLC0415
        bench,
        doctor,
        evaluate,
        export,
        parity,
        play,
        profile,
        record_dataset,
        runs,
        scenario,
        search,
        study,
        train,
    )

    return {
        "train": (train.Train, train.train),
        "study": (study.Study, study.study),
        "search": (search.Search, search.search),
        "play": (play.Play, play.play),
        "evaluate": (evaluate.Evaluate, evaluate.evaluate),
        "report": (runs.Report, runs.report),
        "runs": (runs.Runs, runs.runs),
        "export": (export.Export, export.export),
        "record": (record_dataset.Record, record_dataset.record),
        "scenario": (scenario.ScenarioCommand, scenario.scenario),
        "bench": (bench.Bench, bench.bench),
        "profile": (profile.Profile, profile.profile),
        "parity": (parity.Parity, parity.parity),
        "doctor": (doctor.Doctor, doctor.doctor),
    }


def _diagnose() -> None:
    """Run the command that needs no extra, without the modules that need tyro and Rich."""
    from cagepool.cli import doctor  # noqa: PLC0415 - no other command needs it

    doctor.doctor(doctor.Doctor())


def _run_command(arguments: Sequence[str]) -> None:
    commands = load_commands()
    from cagepool.cli import args, profile, search, study, train  # noqa: PLC0415 - see load_commands

    if not arguments:
        raise ValueError(f"command must be one of {', '.join(commands)}; got none")
    name, *rest = arguments
    if name in ("-h", "--help"):
        args.print_overview({name: flags for name, (flags, _) in commands.items()})
    if name.startswith("-"):
        args.check_flags([name], ["--help", "--version"], "cagepool")
    if name not in commands:
        known = f"command must be one of {', '.join(commands)}"
        raise ValueError(f"{known}; got {name!r}{suggestion(name, commands)}")
    flags, function = commands[name]
    if name == "train":
        command: Any = train.parse_train(rest)
    elif name == "search":
        command = search.parse_search(rest)
    elif name == "study":
        command = study.parse_study(rest)
    else:
        command = args.parse(flags, f"cagepool {name}", profile.with_hyphens(arguments)[1:])
    with args.field_errors(flags):
        function(command)


def _report_error(error: Exception, code: int) -> int:
    print(f"cagepool: {printable(str(error))}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()

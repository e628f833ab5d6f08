"""Entry point of the `cagepool` command: exit codes, and errors without a traceback.

This module imports nothing that has to be installed: a missing library is reported in a sentence.
"""

import io
import os
import sys
from importlib import metadata

from cagepool import _optional
from cagepool.cli import EXIT_BROKEN_PIPE, EXIT_FAILURE, EXIT_INTERRUPT, EXIT_USAGE


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


def run(arguments: list[str]) -> int:
    """Run a command.

    Returns:
        The exit code.

    Raises:
        SystemExit: the arguments ask for help or can't be parsed.
    """
    if arguments == ["--version"]:
        print(f"cagepool {metadata.version('cagepool')}")
        return 0
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Print a table even if the encoding of the terminal has no ±.
        sys.stdout.reconfigure(errors="replace")
    try:
        with _optional.needed("the command line", "cli", "tyro", "rich"):
            from cagepool.cli import commands  # noqa: PLC0415 - needs the libraries
        commands.run(arguments)
    except KeyboardInterrupt:
        return EXIT_INTERRUPT
    except BrokenPipeError:
        return EXIT_BROKEN_PIPE
    except ValueError as error:
        return _report_error(error, EXIT_USAGE)
    except OSError as error:
        return _report_error(error, EXIT_FAILURE)
    return 0


def _report_error(error: Exception, code: int) -> int:
    print(f"cagepool: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()

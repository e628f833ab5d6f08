"""The `cagepool` command."""

import io
import sys
from importlib import metadata

from cagepool import _optional

FAILED = 1
WRONG_CALL = 2
INTERRUPTED = 130  # what a shell reports after Ctrl-C


def main() -> None:
    """Run the command named on the command line, and exit."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run a command; returns the exit code."""
    if arguments == ["--version"]:
        print(f"cagepool {metadata.version('cagepool')}")
        return 0
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal without a sign for ± still gets a table.
        sys.stdout.reconfigure(errors="replace")
    try:
        with _optional.needed("the command line", "cli", "tyro", "rich"):
            from cagepool.cli import commands  # noqa: PLC0415 - needs the libraries
        commands.run(arguments)
    except (ValueError, OSError, KeyboardInterrupt) as error:
        return _ended(error)
    return 0


def _ended(error: BaseException) -> int:
    """The exit code after an error that needs no traceback."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):  # nobody reads on, and nobody would read why
        sys.stderr.close()
        return FAILED
    return _refused(str(error), WRONG_CALL if isinstance(error, ValueError) else FAILED)


def _refused(sentence: str, code: int = WRONG_CALL) -> int:
    print(f"cagepool: {sentence}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()

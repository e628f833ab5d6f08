"""Command line. Exit codes are listed here, commands in `main`."""

import unicodedata

EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_INTERRUPT = 130  # 128 + SIGINT, as in shells
EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE, as in shells


def printable(text: str) -> str:
    """A text in which control and direction characters, except for line ends, are escaped."""
    return "".join(char if _is_plain(char) else ascii(char)[1:-1] for char in text)


def _is_plain(char: str) -> bool:
    return char.isprintable() or char in "\n\t" or unicodedata.category(char) == "Zs"

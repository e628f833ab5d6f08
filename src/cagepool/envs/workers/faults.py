"""Exceptions of environments as text that crosses to the parent process, cut to a limited size."""

import traceback
from typing import NamedTuple

_SUMMARY_CHARS = 1_000
_TRACEBACK_CHARS = 20_000


class ExceptionReport(NamedTuple):
    """An exception in a worker."""

    summary: str  # type and message in one line
    traceback: str


def describe_exception(error: BaseException) -> ExceptionReport:
    """Report an exception; says how much of a long message or traceback was cut."""
    lines = traceback.format_exception_only(error)
    # A SyntaxError begins with indented lines of code, notes follow the message.
    message = next((line for line in lines if not line.startswith(" ")), lines[-1])
    cut_message = _cut(message.strip(), _SUMMARY_CHARS, 0)
    text = "".join(traceback.format_exception(error))
    half = _TRACEBACK_CHARS // 2
    return ExceptionReport(" ".join(cut_message.split()), _cut(text, half, half))


def _cut(text: str, head: int, tail: int) -> str:
    """Keep the first and last characters of a text."""
    left_out = len(text) - head - tail
    if left_out <= 0:
        return text
    return f"{text[:head]} … ({left_out:,} characters left out) {text[len(text) - tail :]}"

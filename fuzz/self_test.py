"""Harness that dies in its third case, to test that a death is reported; by name only."""

import os
import signal

from numpy.random import Generator

DEADLY = 3
_cases = 0


def run_case(_: Generator) -> None:
    """Count the calls of this process, and end it at the third."""
    global _cases  # noqa: PLW0603 - all that a process has
    _cases += 1
    if _cases == DEADLY:
        os.kill(os.getpid(), signal.SIGSEGV)

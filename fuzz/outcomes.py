"""What a call may do: succeed, or raise a documented exception with a message of one line."""

from collections.abc import Iterator
from contextlib import contextmanager

REFUSALS = (TypeError, ValueError, IndexError, RuntimeError)
# nanobind's own message for a scalar of the wrong type lists the signatures in further lines.
SIGNATURES = "incompatible function arguments"


class UnexpectedOutcomeError(AssertionError):
    """A call did something that is not allowed."""


@contextmanager
def refusal_allowed(kinds: tuple[type[Exception], ...] = REFUSALS) -> Iterator[None]:
    """Pass over a refusal: one of `kinds` with a sentence of one line."""
    try:
        yield
    except UnexpectedOutcomeError:
        raise
    except kinds as error:
        message = str(error)
        if not message or ("\n" in message and SIGNATURES not in message):
            raise UnexpectedOutcomeError(f"the message must be one line: {message!r}") from error

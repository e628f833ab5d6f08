"""Exceptions that a caller may want to catch, and the form of values in messages."""


class EnvironmentFault(RuntimeError):  # noqa: N818 - the fault is in the environment, not here
    """An environment in a worker process raised, died or hung.

    Attributes:
        index: Index of the environment; None if the worker was stepping none.
        worker: Index of the worker process.
        trace: Traceback in the worker; empty if there is none.
    """

    def __init__(self, sentence: str, *, index: int | None, worker: int, trace: str = "") -> None:
        """Set the message: a sentence, followed by the traceback if there is one."""
        super().__init__(f"{sentence}\n\n{trace}" if trace else sentence)
        self.index = index
        self.worker = worker
        self.trace = trace


class RunFileError(ValueError):
    """A file of a run folder cannot be read.

    It is damaged, too large, not a regular file, or has a newer format.
    """


def short_repr(value: object) -> str:
    """The value in one line of at most 100 characters, for messages."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 100 else f"{text[:97]}..."

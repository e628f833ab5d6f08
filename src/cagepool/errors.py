"""Errors that a caller may want to catch."""


class EnvironmentFault(RuntimeError):  # noqa: N818 - a fault of theirs, not an error of ours
    """An environment raised, died or hung.

    Attributes:
        index: Of the environment; none if the worker was in none of them.
        worker: Number of the worker process.
        trace: The traceback in the worker, or an empty text if it left none.
    """

    def __init__(self, sentence: str, *, index: int | None, worker: int, trace: str = "") -> None:
        """Say what happened, followed by the traceback if there is one."""
        super().__init__(f"{sentence}\n\n{trace}" if trace else sentence)
        self.index = index
        self.worker = worker
        self.trace = trace

"""Random numbers of one's own for code that takes them from Python's global generator."""

import random
from types import TracebackType


class Luck:
    """A private state of Python's global generator, in force inside the `with` block.

    Outside of it the global generator is as it was, so that neither other environments nor the
    caller share numbers with what runs inside. Threads do not have their own: one at a time.
    """

    def __init__(self) -> None:
        """Begin at random."""
        self._own = random.Random().getstate()

    def seed(self, seed: int) -> None:
        """Begin anew, as `random.seed` would."""
        self._own = random.Random(seed).getstate()

    def __enter__(self) -> None:
        self._others = random.getstate()
        random.setstate(self._own)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._own = random.getstate()
        random.setstate(self._others)

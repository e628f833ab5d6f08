"""Listener for runs whose progress is not shown."""

from cagepool.train.evaluation import PeriodicScore
from cagepool.train.logging import Row


class NullListener:
    """Ignores the progress."""

    def on_update(self, row: Row, /) -> None:
        pass

    def on_evaluation(self, row: Row, score: PeriodicScore, /, *, is_best: bool) -> None:
        pass


def never() -> bool:
    return False

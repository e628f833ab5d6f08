"""Listeners for runs that nobody watches."""

from cagepool.train.evaluation import Check
from cagepool.train.logging import Row


class Silent:
    """Shows nothing."""

    def updated(self, row: Row, /) -> None:
        pass

    def checked(self, row: Row, check: Check, /, *, is_best: bool) -> None:
        pass


def never() -> bool:
    return False

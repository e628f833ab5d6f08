"""A listener of a search that does nothing."""

from typing import Any

from cagepool.search.gp import Posterior


class NullListener:
    def updated(self, row: Any) -> None: ...

    def checked(self, row: Any, check: object, *, is_best: bool) -> None: ...

    def training_started(self, decision: Any, predicted: Posterior | None, spent: int) -> None: ...

    def training_ended(self, decision: Any) -> None: ...

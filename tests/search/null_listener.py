"""A listener of a search that does nothing."""

from typing import Any

from cagepool.search.gp import Posterior


class NullListener:
    def on_update(self, row: Any) -> None: ...

    def on_evaluation(self, scores: Any) -> None: ...

    def on_training_start(self, decision: Any, predicted: Posterior | None, spent: int) -> None: ...

    def on_training_end(self, decision: Any) -> None: ...

"""A listener of a search that says nothing."""

from typing import Any

from cagepool.search.ucb import Outlook


class Silent:
    def updated(self, row: Any) -> None: ...

    def checked(self, row: Any, check: object, *, is_best: bool) -> None: ...

    def decided(self, decision: Any, believed: Outlook | None, spent: int) -> None: ...

    def trained(self, decision: Any) -> None: ...

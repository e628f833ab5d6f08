"""What displays of long work have in common."""

from typing import Self

from rich.console import Console
from rich.live import Live

LINE_SECONDS = 5.0  # between two plain lines


class Watching:
    """A live picture while it is entered; none where there is no terminal."""

    def __init__(self, console: Console, *, keep: bool) -> None:
        """Show it on the console, and leave the last picture there if it is to be kept."""
        self._console = console
        self._live = Live(console=console, refresh_per_second=4, transient=not keep)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

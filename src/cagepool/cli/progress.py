"""How far a command is."""

from rich.console import Console
from rich.progress import Progress


def progress_bars() -> Progress:
    """Bars on the standard error that are gone afterwards, if somebody may be looking there."""
    console = Console(stderr=True)
    return Progress(console=console, transient=True, disable=not console.is_terminal)

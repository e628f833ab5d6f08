"""Who trains to the orders that a search decides on."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from cagepool import _optional, runs
from cagepool.search.config import SearchConfig
from cagepool.train import runner


class Trainings(Protocol):
    """Trains runs, perhaps several at once."""

    def begin(self, run: runs.Run, /) -> None:
        """Train a run, or be ready to."""

    def end(self, run: runs.Run, should_stop: Callable[[], bool], /) -> int | None:
        """Wait for a training; returns how often it was begun anew, or none if it was to stop."""


class LocalTrainings:
    """Trains in this process, one run after the other."""

    def __init__(self, listener: runner.Listener) -> None:
        """Tell how trainings go."""
        self._listener = listener

    def begin(self, _run: runs.Run) -> None:
        """It is trained when it is waited for."""

    def end(self, run: runs.Run, should_stop: Callable[[], bool]) -> int | None:
        """Train."""
        return 0 if runner.train(run, self._listener, should_stop) else None


def trainings_of(
    config: SearchConfig, listener: runner.Listener
) -> AbstractContextManager[Trainings]:
    """Those that the settings ask for; use them in a `with`."""
    if config.backend != "ray":
        return nullcontext(LocalTrainings(listener))
    with _optional.needed("backend ray", "ray", "ray"):
        from cagepool.train.ray.trainings import RayTrainings  # noqa: PLC0415 - takes seconds

    return RayTrainings(config.ray_actors)

"""Progress events of trainings, and the pipe by which they leave the process of a training."""

import json
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cagepool.experiments.folder import Training

if TYPE_CHECKING:  # loads the trainer
    from cagepool.train.tracking import Row

REPORT_SECONDS = 0.25  # between two updates that a process reports


class Listener:
    """Receives the progress of trainings; a subclass overrides what it needs."""

    def on_start(self, training: Training, /) -> None:
        """A training starts or resumes."""

    def on_update(self, training: Training, row: "Row", /) -> None:
        """A training has made an update; a process reports several per second at most."""

    def on_end(self, training: Training, /) -> None:
        """A training has ended."""

    def on_failure(self, training: Training, message: str, /) -> None:
        """A training has failed."""


class ListenerCallback:
    """Callback of a training in this process that reports its updates to a listener."""

    def __init__(self, listener: Listener, training: Training) -> None:
        """Report the updates of `training`."""
        self._listener = listener
        self._training = training

    def on_update(self, row: "Row") -> None:
        """Pass an update on."""
        self._listener.on_update(self._training, row)

    def on_evaluation(self, _scores: "Row") -> None:
        """Listeners receive no evaluations."""


class EventWriter:
    """Callback of a training that writes events, one JSON line each, to a pipe."""

    def __init__(self, descriptor: int) -> None:
        """Write to this file descriptor."""
        self._written_at = 0.0
        self._file = os.fdopen(descriptor, "w", encoding="utf-8")

    def write(self, **event: Any) -> None:
        """Write one event."""
        self._file.write(json.dumps(event) + "\n")
        self._file.flush()

    def on_update(self, row: "Row") -> None:
        """Write an update, unless one was written just before."""
        now = time.monotonic()
        if now - self._written_at >= REPORT_SECONDS:
            self._written_at = now
            self.write(row={name: float(value) for name, value in row.items()})

    def on_evaluation(self, _scores: "Row") -> None:
        """Evaluations are not reported."""


def read_events(descriptor: int) -> Iterator[dict[str, Any]]:
    """Events of a pipe until its end; lines of anybody else are skipped."""
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(event, dict):
                yield event

"""Scalars for TensorBoard."""

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event, SessionLog  # type: ignore[import-untyped]
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped]


class Events:
    """A file of events in a run's folder.

    TensorBoard's own writer opens the file for every value, in a thread that dies when the disk is
    full; this one writes all values of a step at once, and whoever writes gets the error.
    """

    def __init__(self, folder: Path, dropped_from: int | None = None) -> None:
        """Begin a file, after which older ones count up to the step `dropped_from` only."""
        name = f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}.{os.getpid()}"
        self._file = (folder / name).open("wb", buffering=0)
        self._records = RecordWriter(self._file)
        self._write(Event(wall_time=time.time(), file_version="brain.Event:2"))
        if dropped_from is not None:
            restart = SessionLog(status=SessionLog.START)
            self._write(Event(wall_time=time.time(), step=dropped_from, session_log=restart))

    def add(self, values: Mapping[str, float], step: int) -> None:
        """Write the values of a step, by their tags."""
        scalars = [Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        self._write(Event(wall_time=time.time(), step=step, summary=Summary(value=scalars)))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, event: Event) -> None:
        self._records.write(event.SerializeToString())

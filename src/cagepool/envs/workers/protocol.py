"""Pipe protocol between the parent process and a worker: framing and control messages.

The unit is a word, an int32. A word of at least 0 is the index of an environment: to a worker, the
request to step it; from a worker, the answer that its step is done. ALL requests a step of all
environments of the worker, with one answer. MESSAGE_WORD is followed by the length of a pickled
object, and by the object, padded to whole words.
"""

import os
import pickle
import select
from dataclasses import dataclass
from struct import Struct
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from cagepool import _core
from cagepool.envs.vector_args import Autoreset
from cagepool.envs.workers.shared_memory import NO_ENV, EnvDescription
from cagepool.envs.workers.true_state import TrueStateMode
from cagepool.types import Int32s

ALL = np.int32(_core.ALL_WORD).tobytes()
NO_WORDS: Int32s = np.empty(0, np.int32)
_MESSAGE = np.int32(_core.MESSAGE_WORD).tobytes()
_INT32 = Struct("=i")
_WORD_BYTES = 4
_HEADER_BYTES = 2 * _WORD_BYTES
_PIPE_BYTES = 1 << 16  # default capacity of a pipe


class PipeClosed(Exception):  # noqa: N818 - the normal end of a worker, not an error
    """The process at the other end closed the pipe or ended."""


@dataclass(frozen=True, kw_only=True)
class WorkerTask:
    """First message to a worker: its environments and how to run them."""

    worker: int
    workers: int
    num_envs: int  # of all workers
    start: int  # index of the worker's first environment
    stop: int  # index of its last environment + 1
    env_fns: bytes  # pickled list of functions that make the environments
    autoreset: Autoreset
    true_state: TrueStateMode
    spin: bool  # whether to spin-wait for requests before blocking
    restart: bool  # whether to replace an environment that raises
    restart_reason: str = ""  # the fault that ended the worker's predecessor, if it had one


class EnvsMade(NamedTuple):
    """Answer to a task: all environments of the worker are made."""

    env: EnvDescription


class StepInfos(NamedTuple):
    """Infos of steps or resets; precedes the words that answer for the same environments."""

    infos: list[tuple[int, bytes]]  # environment, pickled dictionary


class FaultReport(NamedTuple):
    """An environment raised."""

    env: int
    traceback: str


class CallResult(NamedTuple):
    """Values that a call returned per environment, or the traceback of the first that raised."""

    values: list[Any]
    env: int = NO_ENV
    traceback: str = ""


def encode_message(content: object) -> bytes:
    """Frame a picklable object as words."""
    pickled = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
    header = np.array([_core.MESSAGE_WORD, len(pickled)], np.int32).tobytes()
    return header + pickled + bytes(-len(pickled) % _WORD_BYTES)


def write_all(pipe: int, content: bytes) -> None:
    """Write to a blocking pipe.

    Raises:
        PipeClosed: the reader is gone.
    """
    try:
        while content:
            content = content[os.write(pipe, content) :]
    except BrokenPipeError:
        raise PipeClosed from None


def write_within(pipe: int, content: bytes, timeout_s: float | None) -> None:
    """Write to a non-blocking pipe.

    Raises:
        TimeoutError: the pipe stayed full for `timeout_s` seconds.
        PipeClosed: the reader is gone.
    """
    deadline_s = None
    while content:
        try:
            content = content[os.write(pipe, content) :]
        except BlockingIOError:
            poll = select.poll()
            poll.register(pipe, select.POLLOUT)
            if timeout_s is not None and deadline_s is None:
                deadline_s = monotonic() + timeout_s
            left_ms = None if deadline_s is None else max(0.0, deadline_s - monotonic()) * 1000
            if not poll.poll(left_ms):
                raise TimeoutError from None
        except BrokenPipeError:
            raise PipeClosed from None


class PipeReader:
    """Reads and parses words and messages from a pipe."""

    def __init__(self, pipe: int) -> None:
        """Read from this file descriptor."""
        self.pipe = pipe
        self._partial = bytearray()  # of a message that has not arrived completely
        self._message_bytes = 0  # size of that message

    @property
    def has_partial_message(self) -> bool:
        """Whether the bytes read so far end inside a message."""
        return bool(self._partial)

    def read_bytes(self) -> bytes:
        """Read the bytes that have arrived; waits for the first. Empty if the writer is gone."""
        return os.read(self.pipe, _PIPE_BYTES)

    def parse(self, data: bytes) -> tuple[Int32s, list[Any]]:
        """Words and messages that these bytes complete.

        Raises:
            PipeClosed: there are no bytes, so the writer is gone.
        """
        if not data:
            raise PipeClosed
        if not self._partial and len(data) % _WORD_BYTES == 0 and _MESSAGE not in data:
            return np.frombuffer(data, np.int32), []
        self._partial += data
        if len(self._partial) < self._message_bytes:
            return NO_WORDS, []
        return self._parse_mixed()

    def read_message(self) -> Any:
        """Wait for the next message; no words may precede it."""
        while True:
            _, messages = self.parse(self.read_bytes())
            if messages:
                return messages[0]

    def is_readable(self) -> bool:
        """Whether `read_bytes` would return at once."""
        return bool(select.select([self.pipe], [], [], 0)[0])

    def _parse_mixed(self) -> tuple[Int32s, list[Any]]:
        words: list[int] = []
        messages = []
        data, offset = bytes(self._partial), 0
        while offset + _HEADER_BYTES <= len(data) or offset + _WORD_BYTES == len(data):
            (word,) = _INT32.unpack_from(data, offset)
            if word != _core.MESSAGE_WORD:
                words.append(word)
                offset += _WORD_BYTES
                continue
            if offset + _WORD_BYTES == len(data):
                break
            (length,) = _INT32.unpack_from(data, offset + _WORD_BYTES)
            self._message_bytes = _HEADER_BYTES + length + -length % _WORD_BYTES
            if offset + self._message_bytes > len(data):
                break
            start = offset + _HEADER_BYTES
            messages.append(pickle.loads(data[start : start + length]))
            offset += self._message_bytes
        self._partial = bytearray(data[offset:])
        if not self._partial:
            self._message_bytes = 0
        return np.array(words, np.int32), messages

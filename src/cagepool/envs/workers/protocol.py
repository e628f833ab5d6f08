"""Pipe protocol between the parent process and a worker: framing and control messages.

The unit is a word, an int32. A word of at least 0 is the index of an environment: to a worker, the
request to step it; from a worker, the answer that its step is done. ALL requests a step of all
environments of the worker, with one answer. MESSAGE_WORD is followed by the length of a pickled
object, and by the object, padded to whole words. WAKE_WORD from a worker means that the answers
which the parent waits for are completion flags in shared memory.
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
from cagepool.envs.workers.faults import ExceptionReport, describe_exception
from cagepool.envs.workers.shared_memory import NO_ENV
from cagepool.envs.workers.true_state import TrueStateMode
from cagepool.types import Int32s

ALL = np.int32(_core.ALL_WORD).tobytes()
NO_WORDS: Int32s = np.empty(0, np.int32)
_MESSAGE = np.int32(_core.MESSAGE_WORD).tobytes()
_WAKE = np.int32(_core.WAKE_WORD).tobytes()
_INT32 = Struct("=i")
_WORD_BYTES = 4
_HEADER_BYTES = 2 * _WORD_BYTES
_PIPE_BYTES = 1 << 16  # default capacity of a pipe
_MAX_POLL_S = 60.0  # a longer wait is repeated, since poll takes milliseconds as an int


class PipeClosed(Exception):  # noqa: N818 - the normal end of a worker, not an error
    """The process at the other end closed the pipe or ended."""


@dataclass(frozen=True, kw_only=True)
class WorkerTask:
    """What a worker starts with: its environments and how to run them."""

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
    check: bool  # whether to check that observations are in their space
    restart_reason: str = ""  # the fault that ended the worker's predecessor, if it had one


class ImportsDone(NamedTuple):
    """The worker has loaded all modules and begins to make its environments."""


class EnvsMade(NamedTuple):
    """All environments of the worker are made."""

    env: bytes  # pickled EnvDescription, which holds objects of the environment


class StepInfos(NamedTuple):
    """Infos of steps or resets; precedes the words that answer for the same environments."""

    infos: list[tuple[int, bytes]]  # environment, pickled dictionary


class FaultReport(NamedTuple):
    """An environment raised."""

    env: int
    error: ExceptionReport
    activity: str = ""  # if it was not what the parent requested
    ends_worker: bool = False  # whether the worker exits because of it


class CallResult(NamedTuple):
    """Pickled value of a call per environment, or the error of the first that raised."""

    values: list[bytes]
    env: int = NO_ENV
    error: ExceptionReport | None = None


def encode_message(content: object) -> bytes:
    """Frame a picklable object as words."""
    pickled = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
    header = np.array([_core.MESSAGE_WORD, len(pickled)], np.int32).tobytes()
    return header + pickled + bytes(-len(pickled) % _WORD_BYTES)


def unpickle(pickled: bytes) -> Any:
    """Load an object that comes from an environment, whose classes may do anything."""
    try:
        return pickle.loads(pickled)
    except (Exception, SystemExit) as error:
        raise pickle.UnpicklingError(describe_exception(error).summary) from error


def write_all(pipe: int, content: bytes) -> None:
    """Write to a blocking pipe."""
    try:
        while content:
            content = content[os.write(pipe, content) :]
    except BrokenPipeError:
        raise PipeClosed from None


def write_within(pipe: int, content: bytes, timeout_s: float) -> None:
    """Write to a non-blocking pipe."""
    full_since_s = None
    while content:
        try:
            content = content[os.write(pipe, content) :]
            full_since_s = None
        except BlockingIOError:
            now_s = monotonic()
            full_since_s = now_s if full_since_s is None else full_since_s
            left_s = full_since_s + timeout_s - now_s
            if left_s <= 0:
                raise TimeoutError from None
            poll = select.poll()
            poll.register(pipe, select.POLLOUT)
            poll.poll(min(left_s, _MAX_POLL_S) * 1000)
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
        """Read the bytes that have arrived; empty if the writer is gone.

        A blocking pipe waits for the first byte.
        """
        return os.read(self.pipe, _PIPE_BYTES)

    def parse(self, data: bytes) -> tuple[Int32s, list[Any]]:
        """Words and messages that these bytes complete."""
        if not data:
            raise PipeClosed
        if not self._partial and len(data) % _WORD_BYTES == 0 and _MESSAGE not in data:
            words = np.frombuffer(data, np.int32)
            return (words[words != _core.WAKE_WORD] if _WAKE in data else words), []
        self._partial += data
        if len(self._partial) < self._message_bytes:
            return NO_WORDS, []
        return self._parse_mixed()

    def is_readable(self) -> bool:
        """Whether `read_bytes` would return at once."""
        poll = select.poll()  # takes any descriptor, select only those below 1024
        poll.register(self.pipe, select.POLLIN)
        return bool(poll.poll(0))

    def _parse_mixed(self) -> tuple[Int32s, list[Any]]:
        words: list[int] = []
        messages = []
        data, offset = bytes(self._partial), 0
        while offset + _HEADER_BYTES <= len(data) or offset + _WORD_BYTES == len(data):
            (word,) = _INT32.unpack_from(data, offset)
            if word != _core.MESSAGE_WORD:
                if word != _core.WAKE_WORD:
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

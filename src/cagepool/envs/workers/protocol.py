"""What goes through the pipes between the caller and a worker: words, and now and then a message.

A word is an int32. From 0 on it is an environment's index: to a worker, "step it"; from a worker,
"it has been stepped". ALL asks for all of a worker's environments, with one answer. MESSAGE is
followed by a length and a pickled object, filled up to whole words.
"""

import os
import pickle
import select
from struct import Struct
from time import monotonic
from typing import Any, TypeAlias

import numpy as np

from cagepool import _core
from cagepool.types import Int32s

Words: TypeAlias = Int32s

ALL = np.int32(_core.ALL_WORD).tobytes()
_MESSAGE = np.int32(_core.MESSAGE_WORD).tobytes()
_INT = Struct("=i")
NONE: Words = np.empty(0, np.int32)
_WORD = 4  # bytes
_HEADER = 2 * _WORD
CHUNK = 1 << 16  # bytes, what a pipe holds


class HungUp(Exception):  # noqa: N818 - it is the usual end of a process
    """Nobody is at the other end of a pipe."""


def message(content: object) -> bytes:
    """The bytes that carry a picklable object."""
    return _framed(pickle.dumps(content, pickle.HIGHEST_PROTOCOL))


def _framed(pickled: bytes) -> bytes:
    """The bytes that carry a pickled object."""
    header = np.array([_core.MESSAGE_WORD, len(pickled)], np.int32).tobytes()
    return header + pickled + bytes(-len(pickled) % _WORD)


def write(pipe: int, content: bytes) -> None:
    """Write all of it; what does not fit waits until it is read.

    Raises:
        HungUp: nobody is there to read it.
    """
    try:
        while content:
            content = content[os.write(pipe, content) :]
    except BrokenPipeError:
        raise HungUp from None


def write_within(pipe: int, content: bytes, limit_s: float | None) -> None:
    """Write all of it to a pipe that does not block.

    Raises:
        TimeoutError: nobody has read it within the limit.
        HungUp: nobody is there to read it.
    """
    deadline = None
    while content:
        try:
            content = content[os.write(pipe, content) :]
        except BlockingIOError:
            room = select.poll()
            room.register(pipe, select.POLLOUT)
            if limit_s is not None and deadline is None:
                deadline = monotonic() + limit_s
            left_ms = None if deadline is None else max(0.0, deadline - monotonic()) * 1000
            if not room.poll(left_ms):
                raise TimeoutError from None
        except BrokenPipeError:
            raise HungUp from None


class Inbox:
    """The reading end of a pipe."""

    def __init__(self, pipe: int) -> None:
        """Read from this pipe."""
        self.pipe = pipe
        self._rest = bytearray()  # of a message that has not come as a whole
        self._wanted = 0  # bytes that make it whole

    @property
    def is_whole(self) -> bool:
        """Whether what has been read ends with the end of a message."""
        return not self._rest

    def read(self) -> tuple[Words, list[Any]]:
        """Words and messages that have come; waits for the first bytes if the pipe blocks.

        Raises:
            HungUp: nobody is there to write any more.
        """
        return self.taken_in(self.more())

    def more(self) -> bytes:
        """The bytes that have come; none: nobody is there to write any more."""
        return os.read(self.pipe, CHUNK)

    def taken_in(self, read: bytes) -> tuple[Words, list[Any]]:
        """Words and messages that are complete with these bytes.

        Raises:
            HungUp: there are none.
        """
        if not read:
            raise HungUp
        if not self._rest and len(read) % _WORD == 0 and _MESSAGE not in read:
            return np.frombuffer(read, np.int32), []
        self._rest += read
        if len(self._rest) < self._wanted:
            return NONE, []
        return self._parse()

    def is_ready(self) -> bool:
        """Whether reading would not wait."""
        return bool(select.select([self.pipe], [], [], 0)[0])

    def wait_for_message(self) -> Any:
        """The next message, when nothing else can come."""
        while True:
            _, messages = self.read()
            if messages:
                return messages[0]

    def _parse(self) -> tuple[Words, list[Any]]:
        words: list[int] = []
        messages = []
        read, place = bytes(self._rest), 0
        while place + _HEADER <= len(read) or place + _WORD == len(read):
            (word,) = _INT.unpack_from(read, place)
            if word != _core.MESSAGE_WORD:
                words.append(word)
                place += _WORD
                continue
            if place + _WORD == len(read):
                break
            (length,) = _INT.unpack_from(read, place + _WORD)
            self._wanted = _HEADER + length + -length % _WORD
            if place + self._wanted > len(read):
                break
            messages.append(pickle.loads(read[place + _HEADER : place + _HEADER + length]))
            place += self._wanted
        self._rest = bytearray(read[place:])
        if not self._rest:
            self._wanted = 0
        return np.array(words, np.int32), messages

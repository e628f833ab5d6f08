"""File descriptors of a pool, all above those of the standard streams.

A process whose standard input is closed (`python script.py <&-`) has descriptor 0 to give away. A
pipe must not get it: the standard streams of a new process would replace the pipe.
"""

import os
import select

_LAST_STANDARD = 2
NO_DESCRIPTOR = -1


def above_standard(descriptor: int) -> int:
    """Move a descriptor out of 0 to 2; returns the new one."""
    if descriptor > _LAST_STANDARD:
        return descriptor
    try:
        return above_standard(os.dup(descriptor))
    finally:
        os.close(descriptor)


def open_pipe() -> tuple[int, int]:
    """Open a pipe: its reading and its writing end."""
    reader, writer = os.pipe()
    return above_standard(reader), above_standard(writer)


def open_epoll() -> "select.epoll":
    """Open an epoll object."""
    epoll = select.epoll()
    if epoll.fileno() > _LAST_STANDARD:
        return epoll
    with epoll:
        return select.epoll.fromfd(above_standard(os.dup(epoll.fileno())))


def open_own_pidfd() -> int:
    """Open a descriptor that becomes readable when this process ends.

    Returns NO_DESCRIPTOR where the kernel has none (before Linux 5.3) or a sandbox forbids it.
    """
    try:
        return above_standard(os.pidfd_open(os.getpid()))
    except OSError:
        return NO_DESCRIPTOR

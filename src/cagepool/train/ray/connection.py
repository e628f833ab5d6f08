"""How a cluster is found."""

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import ray

NEAREST = "auto"  # the cluster that runs on this machine
CONNECT_SECONDS = 5.0
STORE_BYTES = 256 * 1024**2  # of a cluster of our own: a few rollouts; more are kept on the disk
# What a gRPC server is greeted with, and the kind of frame with which it answers (RFC 9113, 3.4).
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
SETTINGS_FRAME = 4


@contextmanager
def connected(address: str | None, cpus: int) -> Iterator[None]:
    """Keeps a connection to a cluster; one that there is already is used as it is.

    Args:
        address: host:port of the head of a cluster of which this machine is a node, or `auto`;
            none: a cluster of its own is started here, and stopped at the end.
        cpus: How many processes a cluster of its own must have room for.

    Raises:
        ValueError: there is no cluster at that address.
    """
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is None:
        os.environ.setdefault("RAY_worker_niceness", "0")  # actors do as much as the learner
        ray.init(
            "local",
            num_cpus=max(cpus, os.cpu_count() or 1),
            object_store_memory=STORE_BYTES,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    else:
        _connect(address)
    try:
        yield
    finally:
        ray.shutdown()


def _connect(address: str) -> None:
    if address != NEAREST:
        _check_answers(address)  # Ray itself would try for minutes
    try:
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise _refused(address, str(error)) from error


def _check_answers(address: str) -> None:
    """Raise ValueError unless there is a gRPC server, as the head of a cluster is."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal():
        raise ValueError(f"ray_address must be host:port or {NEAREST}, got {address!r}")
    try:
        with socket.create_connection((host, int(port)), CONNECT_SECONDS) as line:
            line.sendall(GREETING)
            answer = line.recv(4)
    except (OSError, OverflowError) as error:
        raise _refused(address, str(error)) from error
    if len(answer) < 4 or answer[3] != SETTINGS_FRAME:
        raise _refused(address, "something else answers there")


def _refused(address: str, why: str) -> ValueError:
    return ValueError(
        f"ray_address must be that of the head of a running cluster, got {address}: {why}"
    )

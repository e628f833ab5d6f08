"""Ray: rollouts and whole trainings in other processes and on other machines (docs/ray.md)."""

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from types import FrameType
from typing import Any, NoReturn
from unittest.mock import patch

import grpc  # type: ignore[import-untyped]
import ray
from ray._private import ray_constants
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

from cagepool._machine import usable_cores
from cagepool.train.ray.watchdog import Watchdog

AUTO = "auto"  # address of the cluster that runs on this machine
EXIT_TERMINATED = 128 + signal.SIGTERM  # as in shells
HEALTH_CHECK_SECONDS = 5.0
# Object store of a local cluster: room for a few rollouts; Ray spills more to disk.
OBJECT_STORE_BYTES = 256 * 1024**2


class NodeLostError(ConnectionError):
    """The node of a task has died."""


def start_task(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function on some node of the cluster; returns the reference to its result."""
    task: Any = ray.remote(function).options(max_retries=0, scheduling_strategy="SPREAD")
    return task.remote(*arguments)


def is_done(task: Any, timeout: float) -> bool:
    """Whether a task ends within `timeout` seconds."""
    return bool(ray.wait([task], timeout=timeout)[0])


def result(task: Any, timeout: float | None = None) -> Any:
    """Result of a task or of an actor's call; its exception is raised unwrapped."""
    try:
        return ray.get(task, timeout=timeout)
    except RayTaskError as error:
        raise error.cause from error
    except GetTimeoutError as error:
        raise ConnectionError(f"no node of the cluster answered in {timeout:g} s") from error
    except RayError as error:
        raise NodeLostError(str(error)) from error


def cancel(task: Any) -> None:
    """Cancel a task, and end its process."""
    ray.cancel(task, force=True)


@contextmanager
def cluster_connection(address: str | None, min_cpus: int) -> Iterator[Callable[[str], None]]:
    """Connect to a Ray cluster for the duration of the block; an open connection is reused.

    No process of a local cluster outlives the block or this process.

    Args:
        address: host:port of the head of a cluster that this machine is a node of, or `auto`.
            None: start a local cluster, and stop it at the end.
        min_cpus: Processes that a local cluster must have room for.

    Yields:
        Sets what standard error says about going on if Ray or SIGTERM ends this process.
    """
    if ray.is_initialized():
        yield lambda _remedy: None
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is None:
        session_dir = _start_local_cluster(min_cpus)
    else:
        session_dir = None
        _connect(address)
    with closing(Watchdog(session_dir)) as watchdog:
        try:
            with _exit_at_sigterm():
                yield watchdog.set_remedy
        except SystemExit as end:
            if end.code == EXIT_TERMINATED:
                watchdog.report_termination()
            raise
        finally:
            watchdog.expect_end()
            ray.shutdown()


@contextmanager
def _exit_at_sigterm() -> Iterator[None]:
    """Raise SystemExit at SIGTERM; the handler that `ray.init` installs prints a stack trace."""

    def terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(EXIT_TERMINATED)

    if threading.current_thread() is not threading.main_thread():  # it may not set handlers
        yield
        return
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _start_local_cluster(min_cpus: int) -> str:
    """Start a cluster on this machine; returns its session folder."""
    os.environ.setdefault("RAY_worker_niceness", "0")  # actors do as much work as the learner
    # Ray's agents notice a dead raylet after two seconds, not at once: the watchdog is faster and
    # keeps them from printing its log.
    os.environ.setdefault("RAY_enable_pipe_based_agent_to_parent_health_check", "0")
    try:
        with patch.object(ray_constants, "ENABLE_RAY_CLUSTER", new=False):  # listen on loopback
            context: Any = ray.init(  # its declared type lacks address_info
                "local",
                num_cpus=max(min_cpus, usable_cores()),
                object_store_memory=OBJECT_STORE_BYTES,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
    except Exception as error:
        ray.shutdown()
        reason = " ".join(str(error).split())
        raise ValueError(f"a local Ray cluster must start, it did not: {reason}") from error
    return str(context.address_info["session_dir"])


def _connect(address: str) -> None:
    if address != AUTO:
        _check_health(address)  # ray.init retries for minutes
    try:
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise _address_error(address, str(error)) from error


def _check_health(address: str) -> None:
    """Raise ValueError unless the gRPC health service of a Ray head answers in time."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal():
        raise ValueError(f"ray_address must be host:port or {AUTO}, got {address!r}")
    with grpc.insecure_channel(address, [("grpc.enable_http_proxy", 0)]) as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        try:
            check(b"", timeout=HEALTH_CHECK_SECONDS)
        except grpc.RpcError as error:
            reason = f"no Ray head answers there ({error.details()})"
            raise _address_error(address, reason) from error


def _address_error(address: str, reason: str) -> ValueError:
    return ValueError(
        f"ray_address must be that of the head of a running cluster, got {address}: {reason}"
    )

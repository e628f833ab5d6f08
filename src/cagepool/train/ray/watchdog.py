"""Watchdog process of a Ray driver.

Ray ends the driver without an exception when the raylet dies, and leaves processes behind for a
minute. The watchdog reports the end and kills what is left of a local cluster. This file is also
the program of the process; it imports the standard library only, so that it starts at once.
"""

import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

DONE = "done"
SERVICES = ("raylet", "gcs_server")
CLUSTER_DIED = 3  # exit code of the watchdog
KILL_SECONDS = 10.0
CLOSE_SECONDS = 2 * KILL_SECONDS
STDIN = 0
SHOW_CURSOR = "\x1b[?25h\n"  # a live display hides the cursor


class Watchdog:
    """Handle of the watchdog process of this process."""

    def __init__(self, session_dir: str | None) -> None:
        """Start the process and wait until it watches."""
        self._process = subprocess.Popen(
            [sys.executable, "-I", __file__, session_dir or ""],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for the driver
        )
        assert self._process.stdout is not None
        self._process.stdout.read()  # which it closes
        self._process.stdout.close()
        self._remedy = ""
        threading.Thread(target=self._exit_with_cluster, daemon=True).start()

    def set_remedy(self, remedy: str) -> None:
        """Set what the report says after the reason: how to go on."""
        self._remedy = remedy
        self._send(remedy)

    def report_termination(self) -> None:
        """Report that this process was asked to end by SIGTERM."""
        _report("its process was terminated", self._remedy)

    def expect_end(self) -> None:
        """From now on, report nothing when the driver or its cluster ends."""
        self._send(DONE)

    def close(self) -> None:
        """End the watchdog, and with it what is left of the local cluster."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait(CLOSE_SECONDS)

    def _exit_with_cluster(self) -> None:
        """End this process when the local cluster dies; Ray would do so at some later call."""
        if self._process.wait() == CLUSTER_DIED:
            with suppress(OSError, ValueError):  # as at every exit
                sys.stdout.flush()
            os._exit(1)

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has reported the end of the raylet and gone
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()


def watch(session_dir: str) -> int:
    """Wait for the end of the driver or of its cluster, report it, and kill the local cluster.

    Returns:
        Exit code of the watchdog.
    """
    messages = bytearray()
    services = _open_services(session_dir)
    os.close(sys.stdout.fileno())  # tells the driver that this process watches
    cluster_died = _wait_for_end(services, messages)
    last = messages.decode().split("\n")[-2] if messages else ""
    if last != DONE:
        reason = "its Ray node died"
        _report(reason if cluster_died else f"its process was killed, or {reason}", last)
    _kill_cluster(session_dir)
    return CLUSTER_DIED if cluster_died else 0


def _wait_for_end(services: list[int], messages: bytearray) -> bool:
    """Receive messages until the driver or a service ends; returns whether a service did."""
    while True:
        ready = select.select([STDIN, *services], [], [])[0]
        if STDIN in ready:
            received = os.read(STDIN, 65536)
            messages += received
            if not received:
                return False
            if messages.endswith(f"{DONE}\n".encode()):
                services = []
        else:
            for service in services:  # before they tell the driver, which would print their logs
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(service, signal.SIGKILL)
            return True


def _kill_cluster(session_dir: str) -> None:
    deadline = time.monotonic() + KILL_SECONDS
    while (left := list(_processes(session_dir))) and time.monotonic() < deadline:
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.01)  # until the kernel has closed their files


def _report(reason: str, remedy: str) -> None:
    sentence = f"cagepool: the run had to stop: {'; '.join(filter(None, (reason, remedy)))}"
    with suppress(OSError):  # nobody reads it
        cursor = SHOW_CURSOR if sys.stderr.isatty() else ""
        print(f"{cursor}{sentence}", file=sys.stderr, flush=True)  # noqa: T201


def _open_services(session_dir: str) -> list[int]:
    """File descriptors of the services without which a cluster does not work."""
    services = []
    for process in _processes(session_dir):
        with suppress(OSError):
            if Path(f"/proc/{process}/exe").readlink().name in SERVICES:
                services.append(os.pidfd_open(process))
    return services


def _processes(session_dir: str) -> Iterator[int]:
    """Processes of a cluster: those that write files, their logs, in its session folder."""
    if not session_dir:
        return
    driver = os.getppid()
    for descriptors in Path("/proc").glob("[0-9]*/fd"):
        process = int(descriptors.parent.name)
        if process not in (driver, os.getpid()) and _writes_file(descriptors, session_dir):
            yield process


def _writes_file(descriptors: Path, folder: str) -> bool:
    """Whether a process has a file of a folder open for writing; `tail -f` of a log has not."""
    with suppress(OSError):  # it has ended, or is another user's
        for descriptor in descriptors.iterdir():
            with suppress(OSError):
                if descriptor.readlink().is_relative_to(folder):
                    path = descriptors.with_name("fdinfo") / descriptor.name
                    flags = re.search(r"flags:\s*([0-7]+)", path.read_text())
                    if flags and int(flags[1], 8) & os.O_ACCMODE != os.O_RDONLY:
                        return True
    return False


if __name__ == "__main__":
    sys.exit(watch(sys.argv[1]))

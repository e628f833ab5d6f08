"""Addresses at which no Ray cluster answers."""

import http.server
import ipaddress
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest

from cagepool._machine import usable_cores
from cagepool.cli.main import run as command
from cagepool.train import ray
from cagepool.train.ray import cluster_connection


def assert_refused(address: str, sentence: str) -> None:
    """Refused before Ray itself tries to connect, which takes it a minute."""
    tries = AssertionError("Ray tries to connect")
    with (
        patch("ray.init", side_effect=tries),
        pytest.raises(ValueError, match=sentence),
        cluster_connection(address, 1),
    ):
        pytest.fail("a cluster answered")


def test_a_closed_port_is_refused_within_seconds() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert_refused(
        f"127.0.0.1:{port}", f"head of a running cluster, got 127.0.0.1:{port}: .*refused"
    )


def test_a_server_of_another_kind_is_refused_within_seconds() -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as other:
        threading.Thread(target=other.handle_request, daemon=True).start()
        assert_refused(f"127.0.0.1:{other.server_port}", "no Ray head answers there")


@pytest.mark.parametrize("address", ["nowhere", "ray://host:1", "host:port", ":1"])
def test_a_malformed_address_is_refused(address: str) -> None:
    assert_refused(address, "ray_address must be host:port or auto")


def test_an_address_without_the_ray_backend_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["train", "--ray-address", "auto"]) == 2
    assert capsys.readouterr().err == "cagepool: --ray-address needs --backend ray, got auto\n"


def test_a_port_that_never_answers_is_refused_within_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ray, "HEALTH_CHECK_SECONDS", 0.5)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        assert_refused(f"127.0.0.1:{silent.getsockname()[1]}", "no Ray head answers there")


@pytest.mark.ray
def test_a_local_cluster_listens_on_loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with TemporaryDirectory() as folder:  # paths of pytest's folders are too long for its sockets
        monkeypatch.setenv("TMPDIR", folder)
        with cluster_connection(None, 1):
            ray.result(ray.start_task(usable_cores))  # a worker listens too
            addresses = {address for name in ("tcp", "tcp6") for address in listening(name)}
    assert addresses
    assert all(address.is_loopback for address in addresses)


def listening(table: str) -> Iterator[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """Addresses at which this process and its descendants listen."""
    sockets = set()
    for pid in descendants(os.getpid()):
        for descriptor in Path(f"/proc/{pid}/fd").glob("*"):
            with suppress(OSError):
                sockets.add(str(descriptor.readlink()))
    for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
            words = bytes.fromhex(fields[1].partition(":")[0])
            parts = [words[start : start + 4][::-1] for start in range(0, len(words), 4)]
            address = ipaddress.ip_address(b"".join(parts))
            yield getattr(address, "ipv4_mapped", None) or address


def descendants(pid: int) -> Iterator[int]:
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from descendants(int(child))

"""Addresses at which no Ray cluster answers."""

import http.server
import socket
import threading
import time

import pytest

from cagepool.cli.main import run as command
from cagepool.train import ray
from cagepool.train.ray import cluster_connection


def assert_refused(address: str, sentence: str) -> None:
    start = time.monotonic()
    with pytest.raises(ValueError, match=sentence), cluster_connection(address, 1):
        pytest.fail("a cluster answered")
    assert time.monotonic() - start < 10


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

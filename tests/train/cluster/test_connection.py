"""Addresses at which there is no cluster."""

import http.server
import socket
import threading
import time

import pytest

from cagepool.cli.main import run as command
from cagepool.train.ray import connected


def refused(address: str, sentence: str) -> None:
    start = time.monotonic()
    with pytest.raises(ValueError, match=sentence), connected(address, 1):
        pytest.fail("there is a cluster")
    assert time.monotonic() - start < 10


def test_a_port_on_which_nobody_listens_is_refused_soon() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    refused(f"127.0.0.1:{port}", f"head of a running cluster, got 127.0.0.1:{port}: .*refused")


def test_a_server_of_another_kind_is_refused_soon() -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as other:
        threading.Thread(target=other.handle_request, daemon=True).start()
        refused(f"127.0.0.1:{other.server_port}", "something else answers there")


@pytest.mark.parametrize("address", ["nowhere", "ray://host:1", "host:port", ":1"])
def test_what_is_no_address_is_refused(address: str) -> None:
    refused(address, "ray_address must be host:port or auto")


def test_an_address_without_the_backend_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["train", "--ray-address", "auto"]) == 2
    assert capsys.readouterr().err == "cagepool: --ray-address needs --backend ray, got auto\n"

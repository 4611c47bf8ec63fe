"""The relay leads to a server that is there, both ways, and leaves nothing open."""

import socket
import threading
from contextlib import suppress

import pytest

from playground.ports import LOOPBACK
from playground.relay import Relay


def echo_once(listener: socket.socket) -> None:
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            with connection:
                while data := connection.recv(100):
                    connection.sendall(data.upper())


def test_bytes_go_both_ways_through_the_first_server_that_is_there() -> None:
    with socket.create_server((LOOPBACK, 0)) as listener, socket.create_server((LOOPBACK, 0)) as unused:
        threading.Thread(target=echo_once, args=(listener,), daemon=True).start()
        dead = f"{LOOPBACK}:{unused.getsockname()[1]}"
        unused.close()
        with Relay([dead, f"{LOOPBACK}:{listener.getsockname()[1]}"]) as relay:
            with socket.create_connection((LOOPBACK, relay.port), timeout=5) as client:
                client.sendall(b"hello")
                assert client.recv(100) == b"HELLO"
            with socket.create_connection((LOOPBACK, relay.port), timeout=5) as client:
                client.sendall(b"again")
                assert client.recv(100) == b"AGAIN"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((LOOPBACK, relay.port), timeout=5)
        listener.shutdown(socket.SHUT_RDWR)


def test_without_any_server_the_connection_ends() -> None:
    with socket.create_server((LOOPBACK, 0)) as unused:
        dead = f"{LOOPBACK}:{unused.getsockname()[1]}"
    with Relay([dead]) as relay, socket.create_connection((LOOPBACK, relay.port), timeout=5) as client:
        assert client.recv(100) == b""

"""A connection that can never be made says why, and at once: kafka-python tries until its time is over, and tells of that."""

import gc
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest

from activities.adapters.kafka_admin import BrokerAdmin
from activities.ports.stores import Secret
from domain.errors import NotLetIn
from playground.fakes.spec import fake_spec

TLS_ALERT = b"\x15\x03\x03\x00\x02\x02\x28"
"""What a server that wants TLS says to who speaks otherwise: read as the length of a frame it is absurd."""


@pytest.fixture
def server() -> Iterator[str]:
    """Answers whoever connects with an alert, and waits until they hang up."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):  # the listener was shut: the end
            while True:
                client, _ = listener.accept()
                with client:
                    client.settimeout(1)
                    with suppress(OSError):
                        client.recv(1024)
                        client.sendall(TLS_ALERT)
                        client.recv(1024)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"127.0.0.1:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ("security.protocol=PLAINTEXT", "InvalidReceiveError"),
        ("security.protocol=SSL", "SSL"),
        ("security.protocol=SSL\nssl.cafile=/nowhere/ca.pem", "FileNotFoundError"),
    ],
)
async def test_why_no_connection_can_be_made_is_told_at_once(server: str, properties: str, named: str) -> None:
    secrets = SimpleNamespace(resolve=lambda _: Secret(properties))
    spec = fake_spec()
    kafka = spec.kafka.model_copy(update={"bootstrap_servers": (server,), "client_properties": "env:ANY"})
    cluster: Any = SimpleNamespace(spec=spec.model_copy(update={"kafka": kafka}))
    begun = time.monotonic()
    with pytest.raises(NotLetIn, match=named) as raised:
        await BrokerAdmin(cast("Any", secrets), seconds=40.0).view(cluster)
    assert time.monotonic() - begun < 20
    assert "client_properties" in str(raised.value)
    del raised
    gc.collect()  # a socket that was left open would be complained about in another test

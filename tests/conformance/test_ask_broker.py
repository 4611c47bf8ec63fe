"""`KafkaAdmin.ask_broker`: a real socket that accepts and says nothing, beside one that answers; and the fake."""

import gc
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest

from activities.adapters.kafka_admin import BrokerAdmin
from activities.diagnosis.brokers import ask_brokers
from activities.observing.addresses import Addresses
from activities.ports.stores import Secret
from domain.cluster import KafkaClientSpec
from domain.diagnosis.causes.hints import Asked
from domain.errors import Obstacle, Transient
from playground.fakes.cluster import FakeCluster
from playground.fakes.spec import fake_spec

METADATA, API_VERSIONS = 3, 18
UNSUPPORTED_VERSION = 35
SAYS_NOTHING = "it accepts the connection, but answers no request within 0.5 s"


def answer_of(request: bytes) -> bytes:
    """A broker that speaks the first versions only, and lists nobody, as one that has just started in KRaft mode."""
    key, version, correlation = struct.unpack(">hhi", request[:8])
    if key == API_VERSIONS:
        error = UNSUPPORTED_VERSION if version else 0
        return struct.pack(">ihi3h3h", correlation, error, 2, METADATA, 0, 1, API_VERSIONS, 0, 0)
    return struct.pack(">iiii", correlation, 0, -1, 0)


def garbling(client: socket.socket) -> None:
    """Each answer is of the length that it says, and of nothing that was asked."""
    while client.recv(4096):
        client.sendall(struct.pack(">ii", 12, 0x5EADBEEF) + bytes(range(200, 208)))


def answering(client: socket.socket) -> None:
    while size := client.recv(4):
        request = client.recv(struct.unpack(">i", size)[0], socket.MSG_WAITALL)
        answer = answer_of(request)
        client.sendall(struct.pack(">i", len(answer)) + answer)


def mute(client: socket.socket) -> None:
    while client.recv(1024):
        pass


def closing(_: socket.socket) -> None:
    pass


@contextmanager
def serving(behave: Callable[[socket.socket], None]) -> Iterator[str]:
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):  # the listener was shut: the end
            while True:
                client, _ = listener.accept()
                with client, suppress(OSError):
                    behave(client)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"127.0.0.1:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


def admin(properties: str = "") -> BrokerAdmin:
    return BrokerAdmin(cast("Any", SimpleNamespace(resolve=lambda _: Secret(properties))), seconds=1.0)


def record(*servers: str) -> Any:
    kafka = KafkaClientSpec(bootstrap_servers=servers, client_properties="env:ANY")
    return SimpleNamespace(spec=fake_spec().model_copy(update={"kafka": kafka}))


@pytest.mark.parametrize(
    ("behave", "properties", "obstacle", "words"),
    [
        (mute, "", Obstacle.LATE, SAYS_NOTHING),
        (mute, "security.protocol=SSL", Obstacle.LATE, SAYS_NOTHING),
        (closing, "", Obstacle.LATE, "it closes our connection"),
        (answering, "security.protocol=SSL", Obstacle.TLS, "the TLS handshake fails|no request within"),
        (garbling, "", Obstacle.GARBLED, "not one of Kafka's protocol|no request within"),
    ],
)
async def test_what_a_broker_does_in_place_of_an_answer(
    behave: Callable[[socket.socket], None], properties: str, obstacle: Obstacle, words: str
) -> None:
    with serving(behave) as address:
        begun = time.monotonic()
        with pytest.raises(Transient, match=words) as raised:
            await admin(properties).ask_broker(record(address), 1, address, 0.5)
        assert time.monotonic() - begun < 3
    assert raised.value.obstacle in {obstacle, Obstacle.LATE}
    del raised
    gc.collect()  # a socket that was left open would be complained about in another test


async def test_who_takes_a_connection_and_begins_no_tls_does_not_keep_a_view_for_ever() -> None:
    with serving(mute) as address:
        begun = time.monotonic()
        with pytest.raises(Transient, match="no answer in time"):
            await admin("security.protocol=SSL").view(record(address))
        assert time.monotonic() - begun < 5
    gc.collect()


async def test_nobody_there() -> None:
    with pytest.raises(Transient, match="it accepts no connection"):
        await admin().ask_broker(record("127.0.0.1:1"), 1, "127.0.0.1:1", 0.5)


@pytest.mark.parametrize("is_real", [True, False])
async def test_one_that_does_not_answer_is_told_from_those_that_do(is_real: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At its listener for clients, by what the bootstrap servers are; once, and all at the same time."""
    monkeypatch.setattr("activities.diagnosis.brokers.ASK_SECONDS", 0.5)
    silent: list[str] = []
    with ExitStack() as stack:
        kafka, cluster = FakeCluster(), cast("Any", FakeCluster().record())
        kafka.faults.mute_brokers = {2}
        asked: Any = kafka
        where = {broker.id: f"{broker.host}:9092" for broker in kafka.spec.brokers}
        if is_real:
            where = {i: stack.enter_context(serving(mute if i == 2 else answering)) for i in (1, 2, 3)}
            asked, cluster = admin(), record(where[1])
        addresses: dict[int, Addresses] = {i: {"REPLICATION": "10.0.0.1:1", "CLIENT": at} for i, at in where.items()}
        begun = time.monotonic()
        found = await ask_brokers(asked, cluster, addresses, silent)
        assert time.monotonic() - begun < 3
    assert found == {1: Asked(where[1]), 2: Asked(where[2], SAYS_NOTHING, Obstacle.LATE), 3: Asked(where[3])}
    assert silent == []
    gc.collect()
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("kafka-io")]

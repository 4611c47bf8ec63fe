"""What a metadata answer means, without any broker."""

import errno
import socket
import ssl
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka.errors import (
    InvalidReceiveError,
    KafkaConnectionError,
    KafkaError,
    RequestTimedOutError,
    SaslAuthenticationFailedError,
)

from activities.adapters import kafka_admin
from activities.adapters.kafka_admin.connections import Client, is_anybody_there
from activities.adapters.kafka_admin.metadata import Partition, displaced, view_of
from domain.errors import BrokerApart, Obstacle, Transient
from domain.observed.observation import PartitionFault
from playground.fakes.spec import fake_spec


def answer(brokers: list[int], *partitions: tuple[list[int], list[int], int], error: int = 0) -> Any:
    """A topic `orders` with (replicas, ISR, leader) for each partition."""
    found = [
        SimpleNamespace(partition_index=n, replica_nodes=replicas, isr_nodes=isr, leader_id=leader)
        for n, (replicas, isr, leader) in enumerate(partitions)
    ]
    return SimpleNamespace(
        cluster_id="abc",
        brokers=[SimpleNamespace(node_id=b, rack=f"rack-{b}" if b > 1 else None) for b in brokers],
        topics=[SimpleNamespace(name="orders", error_code=error, partitions=found)],
    )


@pytest.mark.parametrize(
    ("replicas", "in_sync", "min_isr", "needed"),
    [
        (3, 3, 2, False),
        (3, 2, 2, True),
        (3, 3, 3, True),
        (2, 2, 1, False),
        (2, 2, 2, True),
        (1, 1, 1, True),
        (3, 1, 2, True),  # below its minimum already: the last one in sync stays
        (2, 2, 3, False),  # no acks=all write can succeed, whoever runs
        (2, 1, 3, True),
    ],
)
def test_who_is_needed(replicas: int, in_sync: int, min_isr: int, needed: bool) -> None:
    partition = Partition("orders-0", frozenset(range(replicas)), frozenset(range(in_sync)), 0, min_isr)
    assert partition.needs(0) is needed
    assert not partition.needs(replicas), "a broker without a replica is not needed"


def test_a_broker_that_is_not_listed_is_neither_in_sync_nor_leading() -> None:
    view = view_of(answer([1, 3], ([1, 2, 3], [1, 2, 3], 1), ([2, 1], [2, 1], 2), ([2], [2], -1)), {"orders": 2})
    assert view.under_replicated == tuple(
        PartitionFault(partition=f"orders-{n}", missing=(2,), leader=1 if n == 0 else None) for n in range(3)
    )
    assert view.offline == ("orders-1", "orders-2")
    assert view.last_in_sync == {"orders-1": (1, 2), "orders-2": (2,)}
    assert view.needs == {1: ("orders-0", "orders-1"), 3: ("orders-0",)}


def test_who_shares_partitions_is_told_of_the_assignment_in_sync_or_not() -> None:
    view = view_of(answer([1, 3], ([1, 2, 3], [1], 1), ([2, 3], [3], 3)), {"orders": 2})
    assert view.shared is not None
    assert [(pair.brokers, pair.count, pair.example) for pair in view.shared] == [
        ((1, 2), 1, "orders-0"),
        ((1, 3), 1, "orders-0"),
        ((2, 3), 2, "orders-0"),
    ]
    assert view.racks == {3: "rack-3"}


def test_who_is_displaced_is_alive_in_sync_and_first_of_the_replicas() -> None:
    seen = answer([1, 3], ([3, 1], [3, 1], 1), ([1, 3], [3, 1], 1), ([3, 1], [1], 1), ([2, 1], [2, 1], 1), ([], [], -1))
    assert displaced(seen) == [("orders", 0)]


def test_a_topic_that_cannot_be_read_makes_the_view_unknown() -> None:
    with pytest.raises(Transient, match="orders"):
        view_of(answer([1], error=5), {"orders": 1})
    with pytest.raises(Transient, match="orders"):
        view_of(answer([1], ([1], [1], 1)), {})


class Brokers:
    """Stands for the connections to brokers: each says which brokers it knows."""

    def __init__(self, known: dict[int, list[int]]) -> None:
        self._known = known

    def metadata(self, topics: list[str] | None, node_id: int | None = None) -> Any:
        assert topics == []
        assert node_id is not None
        return answer(self._known[node_id])


@pytest.mark.parametrize(
    ("known", "does_agree"), [({1: [1, 2], 2: [2, 1]}, True), ({1: [1, 2], 2: []}, False), ({1: [1, 2], 2: [2]}, False)]
)
def test_every_listed_broker_must_list_the_same(
    monkeypatch: pytest.MonkeyPatch, known: dict[int, list[int]], does_agree: bool
) -> None:
    """A broker that has just started in KRaft mode lists nobody; one that is cut off lists who was there."""
    monkeypatch.setattr(kafka_admin, "is_anybody_there", lambda _server: True)
    listed: Any = SimpleNamespace(
        cluster_id="abc", brokers=[SimpleNamespace(node_id=b, host="127.0.0.1", port=1) for b in (1, 2)]
    )
    spec, client = fake_spec().kafka, cast("Any", Brokers(known))
    if does_agree:
        kafka_admin.ensure_agreement(spec, client, listed)
        return
    with pytest.raises(BrokerApart, match="broker 2 lists brokers") as raised:
        kafka_admin.ensure_agreement(spec, client, listed)
    assert (raised.value.broker_id, raised.value.address) == (2, None)
    assert raised.value.listed == {1, 2}


def test_a_broker_that_is_listed_and_takes_no_connection_is_told_with_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_admin, "is_anybody_there", lambda server: server != "10.0.0.2:9")
    brokers = [SimpleNamespace(node_id=b, host=f"10.0.0.{b}", port=9) for b in (1, 2)]
    listed: Any = SimpleNamespace(cluster_id="abc", brokers=brokers)
    with pytest.raises(BrokerApart, match="accepts no connection of Keeperless") as raised:
        kafka_admin.ensure_agreement(fake_spec().kafka, cast("Any", Brokers({1: [1, 2]})), listed)
    assert (raised.value.broker_id, raised.value.address) == (2, "10.0.0.2:9")


def test_who_has_no_file_left_blames_no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(Transient, match="the host of keeperless-activities cannot open a connection") as raised:
        is_anybody_there("10.0.0.2:9")
    assert raised.value.obstacle is Obstacle.OURS
    assert not isinstance(raised.value, BrokerApart)


def failed(error: KafkaError, cause: Exception | None = None) -> KafkaError:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "obstacle", "words"),
    [
        (
            failed(KafkaConnectionError("TLS: certificate has expired"), ssl.SSLError(1, "certificate has expired")),
            Obstacle.TLS,
            "certificate has expired",
        ),
        (InvalidReceiveError(), Obstacle.TLS, "security.protocol"),
        (SaslAuthenticationFailedError("Invalid username"), Obstacle.FORBIDDEN, "Invalid username"),
        (KafkaConnectionError("Connection closed"), Obstacle.LATE, "closes our connection"),
        (RequestTimedOutError("Request timed out after 5000 ms"), Obstacle.LATE, "gives no answer in time"),
    ],
)
def test_what_one_broker_alone_does_to_us_names_that_broker(
    monkeypatch: pytest.MonkeyPatch, error: KafkaError, obstacle: Obstacle, words: str
) -> None:
    monkeypatch.setattr(kafka_admin, "is_anybody_there", lambda _server: True)
    listed: Any = SimpleNamespace(
        cluster_id="abc", brokers=[SimpleNamespace(node_id=b, host="127.0.0.1", port=b) for b in (1, 2)]
    )

    def metadata(topics: list[str], node_id: int) -> Any:
        if node_id == 2:
            raise error
        return answer([1, 2])

    client = cast("Any", SimpleNamespace(metadata=metadata))
    with pytest.raises(BrokerApart, match=rf"broker 2 at 127.0.0.1:2: .*{words}") as raised:
        kafka_admin.ensure_agreement(fake_spec().kafka, client, listed)
    assert (raised.value.broker_id, raised.value.address, raised.value.obstacle) == (2, None, obstacle)


def test_a_name_of_a_broker_that_is_not_resolved_is_told_as_that() -> None:
    listed: Any = SimpleNamespace(
        cluster_id="abc", brokers=[SimpleNamespace(node_id=1, host="no-such-host.invalid", port=9092)]
    )
    with pytest.raises(BrokerApart, match=r"no-such-host\.invalid cannot be resolved") as raised:
        kafka_admin.ensure_agreement(fake_spec().kafka, cast("Any", Brokers({})), listed)
    assert raised.value.obstacle is Obstacle.UNRESOLVED


@pytest.mark.parametrize(("server", "asked"), [("h:2", 2), ("h:3", 3), ("balancer:1", None)])
def test_the_same_broker_is_asked_first_each_time(server: str, asked: int | None) -> None:
    """Else brokers that disagree would give another picture with every look, as whoever is asked sees it."""
    client = Client(server, {}, 1.0)
    client.close()
    brokers = [SimpleNamespace(node_id=b, host="h", port=b) for b in (1, 2, 3)]
    sent: list[int | None] = []
    manager = SimpleNamespace(
        cluster=SimpleNamespace(brokers=lambda: brokers), send=None, run=lambda _send, _request, broker: sent.append(broker)
    )
    client._manager = cast("Any", manager)
    client.metadata(topics=None)
    client.metadata(topics=None, node_id=1)
    assert sent == [asked, 1]

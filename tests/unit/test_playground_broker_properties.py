"""Properties files that look as people leave them, and mean the same to Java."""

from pathlib import Path

import javaproperties
import pytest

from playground.broker_properties import BrokerAddresses, render

CONNECT = "127.0.0.1:2181,127.0.0.1:2182,127.0.0.1:2183/kafka"


def broker(id_: int) -> BrokerAddresses:
    return BrokerAddresses(id_, "127.0.0.1", 9092 + id_, f"rack-{id_}", Path(f"/data/{id_}"), CONNECT)


@pytest.mark.parametrize("id_", [1, 2, 3, 4])
def test_every_spelling_means_the_same(id_: int) -> None:
    read = javaproperties.loads(render(broker(id_)))
    assert read["broker.id"] == str(id_)
    assert read["broker.rack"] == f"rack-{id_}"
    assert read["zookeeper.connect"] == CONNECT
    assert read["listeners"] == read["advertised.listeners"] == f"PLAINTEXT://127.0.0.1:{9092 + id_}"
    assert read["inter.broker.protocol.version"] == "3.9"
    assert read["authorizer.class.name"] == "kafka.security.authorizer.AclAuthorizer"
    assert read["allow.everyone.if.no.acl.found"] == "true"
    assert read["super.users"] == "User:ANONYMOUS"
    assert read["broker.heartbeat.interval.ms"] == "250"


def test_nothing_of_kraft_is_there() -> None:
    read = javaproperties.loads(render(broker(1)))
    assert not {"process.roles", "node.id", "controller.quorum.voters", "zookeeper.metadata.migration.enable"} & set(read)


def test_the_files_of_three_brokers_are_spelt_in_three_ways() -> None:
    lines = [line for id_ in (1, 2, 3) for line in render(broker(id_)).splitlines() if line.startswith("broker.id")]
    assert lines == ["broker.id = 1", "broker.id: 2", "broker.id=3"]
    assert ",\\\n    127.0.0.1:2182" in render(broker(2)), "one value continues on the next line"

"""What the throw-away controller gets of the cluster's configuration, and what it must not get."""

import pytest

from domain.configuration.properties import parse
from domain.zk_to_kraft.rehearsal.files import chroot_of, connect_of, controller_properties
from playground.example import example_cluster

SPEC = example_cluster()
BROKER = """\
broker.id=1
zookeeper.connect=zk1.example:2181,zk2.example:2181/kafka
zookeeper.set.acl=true
zookeeper.ssl.client.enable=true
zookeeper.ssl.keystore.location=/etc/kafka/keys
listeners=IN://b1.example:9092,OUT://b1.example:9093
listener.security.protocol.map=IN:SASL_SSL,OUT:SSL
inter.broker.listener.name=IN
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.in.plain.sasl.jaas.config=secret
ssl.keystore.password=secret
principal.builder.class=com.example.Builder
password.encoder.secret=the-encoders
authorizer.class.name=kafka.security.authorizer.AclAuthorizer
super.users=User:admin
inter.broker.protocol.version=3.9
"""


@pytest.mark.parametrize(("connect", "chroot"), [("a:1,b:2/x/y", "/x/y"), ("a:1", ""), ("a:1/", "")])
def test_the_chroot_of_a_connect_string(connect: str, chroot: str) -> None:
    assert chroot_of(connect) == chroot


def made(base: str | None = None) -> dict[str, str]:
    return parse(controller_properties(SPEC, base, BROKER, "/private/controller"))


def test_it_knows_no_other_address_than_loopback() -> None:
    text = controller_properties(SPEC, None, BROKER, "/private/controller")
    assert "example" not in text
    assert made()["zookeeper.connect"] == connect_of(SPEC) == "127.0.0.1:2181/kafka"
    assert made()["controller.quorum.voters"] == f"{SPEC.controllers[0].id}@127.0.0.1:9093"
    assert made()["listeners"] == "CONTROLLER://127.0.0.1:9093"
    assert made()["log.dirs"] == "/private/controller"


def test_it_migrates_and_reads_what_brokers_have_encoded() -> None:
    found = made()
    assert found["zookeeper.metadata.migration.enable"] == "true"
    assert found["password.encoder.secret"] == "the-encoders"
    assert found["authorizer.class.name"].endswith("StandardAuthorizer")
    assert found["super.users"] == "User:admin;User:ANONYMOUS"


def test_it_needs_no_keystore_and_no_login_and_looks_for_the_same_listener() -> None:
    found = made()
    assert not [key for key in found if key.startswith(("ssl.", "sasl.", "listener.name.", "principal.", "zookeeper.ssl."))]
    assert "zookeeper.set.acl" not in found
    assert found["inter.broker.listener.name"] == "IN"
    assert set(found["listener.security.protocol.map"].split(",")) == {"IN:PLAINTEXT", "OUT:PLAINTEXT", "CONTROLLER:PLAINTEXT"}


def test_an_operators_base_file_leads_nowhere_else_either() -> None:
    base = "zookeeper.connect=living.example:2181\nmetadata.log.dir=/var/lib/real\nlog.dirs=/var/lib/real\nlisteners=CONTROLLER://living.example:1\n"
    text = controller_properties(SPEC, base, BROKER, "/private/controller")
    assert "living.example" not in text
    assert "/var/lib/real" not in text

"""What is read of certificates, stores and settings for the controllers' listener, on files that OpenSSL could have made."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat, pkcs12

from activities.ports.nodes import Completed, FileContent
from activities.survey.broker_logins import client_properties, try_logins
from activities.survey.certificates import certificates_in, described, is_believed
from activities.survey.key_stores import NodeSettings, Stores, look_at_stores
from activities.zk_to_kraft.listener_look import plain_login, settings_of_node
from domain.checks.trust import is_named
from domain.cluster import BrokerSpec
from domain.configuration.listener_security import settings_of
from domain.configuration.properties import parse
from domain.errors import Permanent, Transient
from domain.observed.survey import Registration
from playground.fakes.cluster import FakeCluster
from playground.secured import Authority

AUTHORITY, STRANGER = Authority("one"), Authority("other")
PASSWORD = "s3cret"
KEY = b"of this test"


def opened(keystore: bytes) -> tuple[Any, list[x509.Certificate]]:
    key, own, above = pkcs12.load_key_and_certificates(keystore, PASSWORD.encode())
    assert own is not None
    return key, [own, *above]


NODE_KEY, CHAIN = opened(AUTHORITY.keystore(PASSWORD))
_, SHORT_LIVED = opened(AUTHORITY.keystore(PASSWORD, valid=timedelta(days=3)))


def pem(chain: Sequence[x509.Certificate]) -> str:
    return "".join(one.public_bytes(Encoding.PEM).decode() for one in chain)


def test_whose_signature_leads_to_a_trusted_one_is_believed() -> None:
    assert is_believed(CHAIN, [STRANGER.certificate(), AUTHORITY.certificate()])
    assert is_believed(CHAIN[:1], CHAIN[1:])
    assert is_believed(CHAIN, CHAIN[:1]), "the certificate itself may be trusted"
    assert not is_believed(CHAIN, [STRANGER.certificate()])
    assert not is_believed(CHAIN, [])


def test_what_is_read_of_a_certificate() -> None:
    found = described(SHORT_LIVED)
    assert found.subject == "CN=node"
    assert found.names == ("node", "127.0.0.1")
    assert (found.can_serve, found.can_call) == (True, True)
    assert timedelta(days=2) < found.until - datetime.now(UTC) < timedelta(days=4), "the authority's own end is another"
    assert certificates_in(pem(CHAIN)) == CHAIN


@pytest.mark.parametrize(
    ("host", "names", "is_one"),
    [
        ("127.0.0.1", ("127.0.0.1",), True),
        ("0:0:0:0:0:0:0:1", ("::1",), True),
        ("10.0.0.1", ("*.0.0.1",), False),
        ("Kafka-1.example.com", ("kafka-1.example.com",), True),
        ("kafka-1.example.com", ("*.example.com",), True),
        ("a.b.example.com", ("*.example.com",), False),
        ("kafka-1.example.com", (), False),
    ],
)
def test_names_are_compared_as_java_does(host: str, names: tuple[str, ...], is_one: bool) -> None:
    assert is_named(host, names) == is_one


class Machine:
    """A node's driver that has files, and answers programs by their words."""

    def __init__(self, files: dict[str, str] | None = None, **answers: Completed | Exception) -> None:
        self.files, self.answers, self.ran = files or {}, answers, list[tuple[str, ...]]()

    async def read_file(self, path: str) -> FileContent | None:
        text = self.files.get(path)
        return FileContent(text.encode(), 0o600, 0, 0) if text is not None else None

    async def run(
        self, arguments: Sequence[str], environment: dict[str, str], limit: timedelta, stdin: bytes = b""
    ) -> Completed:
        self.ran.append(tuple(arguments))
        answer = next(answer for word, answer in self.answers.items() if any(word in argument for argument in arguments))
        if isinstance(answer, Exception):
            raise answer
        return answer


def asked(machine: Machine, properties: dict[str, str] | None = None) -> NodeSettings:
    return NodeSettings(FakeCluster().spec.controllers[0], cast("Any", machine), properties or {})


def pem_key(password: str) -> str:
    encryption = BestAvailableEncryption(password.encode())
    return NODE_KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


PEM_SETTINGS = {
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": "/key.pem",
    "ssl.key.password": PASSWORD,
    "ssl.truststore.type": "PEM",
    "ssl.truststore.location": "/trust.pem",
}
FILES = {"/key.pem": pem_key(PASSWORD) + pem(CHAIN), "/trust.pem": pem([AUTHORITY.certificate()])}


async def look(settings: dict[str, str], files: dict[str, str] | None = None, **answers: Completed | Exception) -> Stores:
    return await look_at_stores(asked(Machine(files, **answers)), settings, needs_key=True)


async def test_stores_of_pem_are_read() -> None:
    stores = await look(PEM_SETTINGS, FILES)
    assert (stores.problems, stores.unknown) == ([], [])
    assert list(stores.chain) == CHAIN
    assert stores.trusted is not None
    assert is_believed(stores.chain, stores.trusted)


INLINE = {
    "ssl.keystore.type": "PEM",
    "ssl.keystore.key": pem_key(PASSWORD),
    "ssl.keystore.certificate.chain": pem(CHAIN),
    "ssl.key.password": PASSWORD,
    "ssl.truststore.type": "PEM",
    "ssl.truststore.certificates": pem(CHAIN[1:]),
}


async def test_stores_of_pem_in_the_properties_are_read() -> None:
    stores = await look(INLINE)
    assert (stores.problems, stores.unknown, list(stores.chain)) == ([], [], CHAIN)


@pytest.mark.parametrize(
    ("changed", "files", "told"),
    [
        ({"ssl.key.password": "other"}, FILES, "does not open with ssl.key.password"),
        ({}, FILES | {"/key.pem": pem_key(PASSWORD) + pem(SHORT_LIVED)}, "not that of its first certificate"),
        ({}, {"/trust.pem": FILES["/trust.pem"]}, "keystore /key.pem does not exist"),
        ({}, FILES | {"/trust.pem": "nothing"}, "the truststore has no certificate"),
        ({"ssl.keystore.location": ""}, FILES, "ssl.keystore.location is not set"),
    ],
)
async def test_what_is_wrong_in_stores_of_pem_is_a_problem(changed: dict[str, str], files: dict[str, str], told: str) -> None:
    stores = await look(PEM_SETTINGS | changed, files)
    assert len(stores.problems) == 1
    assert told in stores.problems[0]


PKCS12 = {
    "ssl.keystore.type": "PKCS12",
    "ssl.keystore.location": "/key.p12",
    "ssl.keystore.password": PASSWORD,
    "ssl.truststore.location": "/trust.jks",
}
ENTRY = f"Alias name: node\nEntry type: PrivateKeyEntry\n{pem(CHAIN)}"
LISTED = Completed(0, ENTRY, "")


@pytest.mark.parametrize(
    ("changed", "answers", "told"),
    [
        ({"ssl.engine.factory.class": "com.example.Engine"}, {}, "com.example.Engine"),
        ({"ssl.keystore.password": "${file:/secrets:key}"}, {}, "config provider"),
        ({"ssl.key.password": "other"}, {}, "a ssl.key.password of its own"),
        ({"ssl.truststore.location": ""}, {}, "Java's own truststore"),
        ({}, {"keytool": Permanent("no such program")}, "keytool cannot be run"),
        ({}, {"/key.p12": Completed(0, ENTRY * 2, "")}, "2 keys"),
    ],
)
async def test_what_cannot_be_looked_at_is_unknown(
    changed: dict[str, str], answers: dict[str, Completed | Exception], told: str
) -> None:
    machine = Machine(**{**answers, "keytool": answers.get("keytool", LISTED)})
    stores = await look_at_stores(asked(machine), PKCS12 | changed, needs_key=True)
    assert any(told in why for why in stores.unknown), stores
    assert stores.problems == []
    assert not any(PASSWORD in word for words in machine.ran for word in words), "no secret is on a command line"


async def test_what_keytool_cannot_open_is_a_problem_in_its_words() -> None:
    refused = Completed(1, "keytool error: java.io.IOException: keystore password was incorrect\n", "")
    assert "password was incorrect" in (await look(PKCS12, None, keytool=refused)).problems[0]
    stores = await look(PKCS12, None, certreq=refused, keytool=LISTED)
    assert stores.problems[0].startswith("the key in /key.p12 does not open")


LOGIN = 'PlainLoginModule required username="kafka" password="a\\"b" user_kafka="a\\"b" user_ann=plain;'
BROKER = parse(
    "listener.security.protocol.map=INTERNAL:SASL_SSL\ninter.broker.listener.name=INTERNAL\nsasl.mechanism.inter.broker.protocol=PLAIN\n"
    "ssl.truststore.location=/common\nlistener.name.internal.ssl.truststore.location=/own\nssl.client.auth=required\n"
    "listener.name.internal.sasl.jaas.config=ignored\n"
) | {"listener.name.internal.plain.sasl.jaas.config": LOGIN}


def test_a_listeners_settings_are_its_own_before_the_common_ones() -> None:
    found = settings_of(BROKER, "INTERNAL", "PLAIN")
    assert found["ssl.truststore.location"] == "/own"
    assert found["sasl.jaas.config"] == LOGIN
    assert "ssl.client.auth" not in found, "with SASL only the listener's own counts"
    assert "sasl.jaas.config" not in settings_of(BROKER, "INTERNAL", "SCRAM-SHA-512")


def test_a_client_gets_the_listeners_settings() -> None:
    given = parse(client_properties(BROKER, "INTERNAL", "SASL_SSL").decode("latin-1"))
    assert given["security.protocol"] == "SASL_SSL"
    assert (given["sasl.mechanism"], given["sasl.jaas.config"]) == ("PLAIN", LOGIN)
    assert given["ssl.truststore.location"] == "/own"
    with pytest.raises(ValueError, match="JAAS file"):
        client_properties({"sasl.mechanism.inter.broker.protocol": "PLAIN"}, "INTERNAL", "SASL_SSL")
    with pytest.raises(ValueError, match="config provider"):
        client_properties(BROKER | {"ssl.key.password": "${file:/x:y}"}, "INTERNAL", "SASL_SSL")


def test_passwords_of_a_login_are_compared_by_digests() -> None:
    login = plain_login({"sasl.jaas.config": LOGIN}, KEY)
    assert login is not None
    assert (login.user, set(login.accepts)) == ("kafka", {"kafka", "ann"})
    assert login.accepts["kafka"] == login.password != login.accepts["ann"]
    assert 'a"b' not in login.model_dump_json()
    assert plain_login({}, KEY) is None
    assert plain_login({"sasl.jaas.config": LOGIN, "sasl.server.callback.handler.class": "com.example.Mine"}, KEY) is None


def test_a_controller_gets_what_its_base_file_lacks_from_the_broker() -> None:
    spec = FakeCluster().spec
    own = {"ssl.truststore.location": "/mine"}
    given = settings_of_node(spec.controllers[0], cast("Any", None), BROKER, own).properties
    assert given["ssl.truststore.location"] == "/mine"
    assert given["inter.broker.listener.name"] == "INTERNAL"
    assert isinstance(spec.brokers[0], BrokerSpec)
    assert settings_of_node(spec.brokers[0], cast("Any", None), BROKER, own).properties.keys() == own.keys() | {
        "listener.security.protocol.map"
    }


ANSWER = "127.0.0.1:9093 (id: 1 rack: null) -> (\n\tProduce(0): 0 to 11\n)\n"
REFUSED = Completed(
    1, "", 'Exception in thread "main" org.x.KafkaException: no\nCaused by: javax.SSLHandshakeException: not trusted\n'
)
AT = tuple(
    Registration(broker_id=n, session=n, addresses={"INTERNAL": f"127.0.0.1:909{n}"}, protocols={"INTERNAL": "SASL_SSL"})
    for n in (1, 2, 3)
)


async def tried(**answers: Completed | Exception) -> list[tuple[str, str | None, str | None]]:
    found = await try_logins(asked(Machine(None, **answers), dict(BROKER)), AT)
    return [(one.what, one.problem, one.unknown) for one in found]


async def test_brokers_that_did_not_answer_are_asked_by_themselves() -> None:
    all_ = "".join(ANSWER.replace("id: 1", f"id: {n}") for n in (1, 2, 3))
    assert all(problem is None for _, problem, _ in await tried(BrokerApi=Completed(0, all_, "")))
    first, others = await tried(BrokerApi=Completed(1, ANSWER, ""), ClusterTool=REFUSED)
    assert first == ("INTERNAL of broker-1", None, None)
    assert others == (
        "INTERNAL of broker-2 at 127.0.0.1:9092, broker-3 at 127.0.0.1:9093",
        "KafkaException: no: SSLHandshakeException: not trusted",
        None,
    )
    slow = await tried(BrokerApi=Transient("still running"), ClusterTool=Completed(0, "Cluster ID: x", ""))
    assert [problem for _, problem, _ in slow] == [None], "slow is not refused"


async def test_of_many_silent_brokers_a_few_are_asked_and_the_rest_is_unknown() -> None:
    machine = Machine(None, BrokerApi=Transient("still running"), ClusterTool=REFUSED)
    many = tuple(AT[0].model_copy(update={"broker_id": n}) for n in range(1, 10))
    *_, rest = await try_logins(asked(machine, dict(BROKER)), many)
    assert (rest.what, rest.problem, rest.unknown is None) == ("INTERNAL of 6 more brokers", None, False)
    assert len(machine.ran) == 1 + 3
    assert await try_logins(asked(machine, dict(BROKER)), ()) == ()


def test_agents_of_the_node_do_not_come_into_tools() -> None:
    given = asked(Machine())
    environment = {"JAVA_HOME": "/java", "JAVA_TOOL_OPTIONS": "-javaagent:/a.jar=port=1"}
    there = replace(given, node=given.node.model_copy(update={"environment": environment}))
    assert (there.tools, there.environment) == ("/java/bin/", {"JAVA_HOME": "/java"})


async def test_a_login_that_cannot_be_tried_is_unknown() -> None:
    ((_, problem, unknown),) = await tried(BrokerApi=Permanent("java: no such program"))
    assert problem is None
    assert unknown is not None
    assert "no such program" in unknown

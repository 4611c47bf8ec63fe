"""One spelling for both sides. Expected texts are those that Kafka 3.9 writes and reads."""

import json
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.drift import normalise
from domain.drift.digests import Digester
from domain.drift.records import KINDS
from domain.drift.znode_paths import paths_of

DIGESTER = Digester(b"0123456789abcdef")


@pytest.mark.parametrize(
    ("znode", "name"),
    [
        ("alice", "alice"),
        ("%3Cdefault%3E", "<default>"),
        ("<default>", None),
        ("CN%3DAlice%2COU%3DTeam%20A", "CN=Alice,OU=Team A"),
        ("%2A", "*"),
        ("a%2Bb", "a+b"),
        ("%E6%9D%B1", "東"),
        ("tilde%7E", "tilde~"),
    ],
)
def test_names_of_entities(znode: str, name: str | None) -> None:
    assert normalise.entity_name(znode) == name
    assert normalise.config_resource(znode) == (name or "")


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_name_survives_its_znode(name: str) -> None:
    znode = normalise.sanitised(name)
    assert normalise.desanitised(znode) == name
    assert not set(znode) & set("/*+ <~"), "letters that Kafka's Sanitizer never leaves"


def test_entities_are_sorted_and_apart() -> None:
    both = normalise.entity_text([("user", None), ("client-id", 'a"b')])
    assert both == '[["client-id","a\\"b"],["user",null]]'
    assert both == normalise.entity_text([("client-id", 'a"b'), ("user", None)])
    assert normalise.entity_text([("user", "東")]) == '[["user","東"]]'
    assert normalise.entity_text([("user", None)]) != normalise.entity_text([("user", "<default>")])


@pytest.mark.parametrize(
    ("text", "value"),
    [("1024", 1024.0), ("1.0E7", 1e7), (" 5d", 5.0), ("-.5f", -0.5), ("Infinity", float("inf")), ("", None), ("1_0", None)],
)
def test_quotas(text: str, value: float | None) -> None:
    assert normalise.quota_value(text) == value


def test_acls() -> None:
    spelt = ["Read", "DescribeConfigs", "ClusterAction", "IdempotentWrite", "All", "READ", "describe_configs", "Fly"]
    found = [normalise.operation_name(operation) for operation in spelt]
    known = ["READ", "DESCRIBE_CONFIGS", "CLUSTER_ACTION", "IDEMPOTENT_WRITE", "ALL", "READ", "DESCRIBE_CONFIGS", "UNKNOWN"]
    assert found == known
    assert [normalise.permission_name(text) for text in ("Allow", "Deny", "DENY", "Maybe")] == [
        "ALLOW",
        "DENY",
        "DENY",
        "UNKNOWN",
    ]
    for name in normalise.OPERATIONS.values():
        assert normalise.operation_name("".join(word.capitalize() for word in name.split("_"))) == name


def test_ids() -> None:
    id_ = bytes(range(240, 256))
    assert normalise.uuid_text(id_) == "8PHy8_T19vf4-fr7_P3-_w"
    assert normalise.uuid_bytes("8PHy8_T19vf4-fr7_P3-_w") == id_
    for wrong in ("", "8PHy8_T19vf4-fr7_P3-", "8PHy8/T19vf4+fr7/P3+/w", "x" * 40):
        with pytest.raises(ValueError):  # noqa: PT011 - any that base 64 has
            normalise.uuid_bytes(wrong)


def test_endpoints() -> None:
    text = normalise.endpoints_text([("SSL", "::1", 9093), ("internal", None, 9092)])
    assert json.loads(text) == ["INTERNAL://:9092", "SSL://[::1]:9093"]
    assert normalise.endpoint_parts("SSL://[::1]:9093") == ("SSL", "::1", 9093)
    assert normalise.endpoint_parts("INTERNAL://:9092") == ("INTERNAL", "", 9092)
    with pytest.raises(ValueError, match="LISTENER"):
        normalise.endpoint_parts("localhost")


def test_scram() -> None:
    parts = normalise.scram_parts("salt=c2FsdA==,stored_key=a2V5,server_key=c2Vydg==,iterations=4096")
    assert parts == {"salt": b"salt", "stored_key": b"key", "server_key": b"serv", "iterations": b"4096"}
    for wrong in ("", "salt=c2FsdA==", "salt=!,stored_key=a2V5,server_key=c2Vydg==,iterations=1"):
        with pytest.raises(ValueError, match="SCRAM") as refused:
            normalise.scram_parts(wrong)
        assert "c2FsdA" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("ssl.keystore.password", True),
        ("listener.name.internal.ssl.key.password", True),
        ("listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config", True),
        ("listener.name.internal.ssl.keystore.key", True),
        ("ssl.truststore.certificates", True),
        ("delegation.token.master.key", True),
        ("My.Private.Thing", True),
        ("ssl.keystore.location", False),
        ("ssl.keystore.type", False),
        ("max.connections", False),
    ],
)
def test_secret_configs(name: str, is_secret: bool) -> None:
    assert normalise.is_secret_config(name) == is_secret


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("log.retention.ms", False),
        ("log.cleaner.backoff.ms", False),
        ("message.max.bytes", False),
        ("min.insync.replicas", False),
        ("compression.zstd.level", False),
        ("num.io.threads", False),
        ("background.threads", False),
        ("max.connections.per.ip.overrides", False),
        ("advertised.listeners", False),
        ("leader.replication.throttled.rate", False),
        ("unclean.leader.election.enable", False),
        ("ssl.keystore.location", False),
        ("listener.name.internal.ssl.keystore.location", False),
        ("listener.name.sasl_ssl.scram-sha-256.sasl.login.class", False),
        ("listener.name.internal.max.connections", False),
        ("remote.log.manager.copy.max.bytes.per.second", False),
        ("producer.id.expiration.ms", False),
        ("listener.name.internal.ssl.key.password", True),
        ("sasl.jaas.config", True),
        ("sasl.oauthbearer.client.thing", True),
        ("our.reporter.api.key", True),
        ("log.shipper.token", True),
        ("listener.name.internal.our.token", True),
        ("xlog.retention.ms", True),
        ("log.retention.ms\n", True),
        ("", True),
    ],
)
def test_broker_configs_are_secret_unless_known(name: str, is_secret: bool) -> None:
    value, digest = normalise.broker_config(DIGESTER, "1", name, "hunter2")
    assert (value is None, digest != "") == (is_secret, is_secret)


def test_a_secret_is_a_digest_of_its_place() -> None:
    plain, digest = normalise.broker_config(DIGESTER, "1", "ssl.key.password", "hunter2")
    assert plain is None
    assert digest is not None
    assert "hunter2" not in digest
    assert digest != normalise.broker_config(DIGESTER, "2", "ssl.key.password", "hunter2")[1]
    assert digest != normalise.broker_config(DIGESTER, "1", "ssl.key.password", "hunter3")[1]
    assert normalise.broker_config(DIGESTER, "1", "ssl.key.password", None) == (None, None)
    assert normalise.broker_config(DIGESTER, "", "log.roll.ms", "7") == ("7", "")
    assert "hunter2" not in normalise.topic_config(DIGESTER, "t", "some.secret", "hunter2")
    assert normalise.topic_config(DIGESTER, "t", "retention.ms", "1") == "1"
    assert normalise.token_key(DIGESTER, "abc") != normalise.token_key(DIGESTER, "abd")


# ---- where a row comes from ----


def paths(kind: str, *key: object) -> tuple[str, ...]:
    return paths_of(kind, key, {normalise.uuid_text(bytes(16)): "orders"})


def test_every_kind_has_paths() -> None:
    keys = {"quota": '[["user","a"]]', "claim": "cluster-id", "pattern": "LITERAL"}
    for kind in KINDS.values():
        key: list[object] = [keys.get(kind.name, keys.get(field.name, "x")) for field in kind.keys]
        key = [bytes(16), 3] if kind.name == "partition" else key
        assert paths(kind.name, *key), kind.name
    with pytest.raises(KeyError):
        paths("no-such-kind", "x")


def test_paths() -> None:
    assert paths("partition", bytes(16), 7)[-1] == "/brokers/topics/orders/partitions/7/state"
    assert paths("partition", normalise.uuid_text(bytes(16)), 7) == paths("partition", bytes(16), 7)
    assert paths("partition", b"\1" * 16, 7) == ()
    assert paths("broker-config", "", "log.roll.ms") == ("/config/brokers/<default>",)
    assert paths("acl", "Topic", "a/b", "PREFIXED", "User:x", "*", "READ", "ALLOW") == (
        "/kafka-acl-extended/prefixed/Topic/a/b",
    )
    assert paths("scram", "<default>", "SCRAM-SHA-256") == ("/config/users/%3Cdefault%3E", "/config/users/<default>")
    both = '[["client-id",null],["user","CN=a b"]]'
    assert f"/config/users/{quote('CN=a b')}/clients/<default>" in paths("quota", both, "producer_byte_rate")
    assert paths("quota", '[["client-id","app"]]', "x") == ("/config/clients/app",)
    assert paths("quota", '[["ip",null]]', "x") == ("/config/ips/<default>",)

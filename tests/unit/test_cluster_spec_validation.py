"""What people may tell us about a cluster: every mistake is answered with the field that holds it."""

import copy
import json
from typing import Any

import pytest
from pydantic import ValidationError

from domain.cluster import ClusterSpec, Role, host_of
from tests.unit.conftest import cluster_spec

GOOD = cluster_spec().model_dump(mode="json")


def changed(path: str, value: Any) -> dict[str, Any]:
    """The good specification with another value at `brokers.0.id` or so; `...` removes the field."""
    spec = copy.deepcopy(GOOD)
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    place: Any = spec
    for part in way:
        place = place[part]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return spec


def complaints(spec: dict[str, Any]) -> str:
    with pytest.raises(ValidationError) as caught:
        ClusterSpec.model_validate(spec)
    return "; ".join(f"{'.'.join(str(part) for part in e['loc'])}: {e['msg']}" for e in caught.value.errors())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("name", "Upper"),
        ("name", ""),
        ("name", "a" * 64),
        ("name", "a/b"),
        ("name", ...),
        ("cluster_id", ""),
        ("cluster_id", "white space"),
        ("cluster_id", "a/b"),
        ("kafka.bootstrap_servers", []),
        ("kafka.bootstrap_servers.0", "no-port"),
        ("kafka.bootstrap_servers.0", "h:0x1"),
        ("kafka.client_properties", "password=1"),
        ("kafka.client_properties", "env:1"),
        ("zookeeper.connect", ""),
        ("zookeeper.connect", "h"),
        ("zookeeper.connect", "h:1/a b"),
        ("zookeeper.connect", "h:1/a,h:2/a"),
        ("zookeeper.session_timeout_seconds", 0),
        ("zookeeper.digest_auth", "user:secret"),
        ("brokers", []),
        ("quorum.controllers", []),
        ("brokers.0.id", -1),
        ("brokers.0.id", 2**31),
        ("brokers.0.id", "one"),
        ("brokers.0.host", ""),
        ("brokers.0.kafka_home", "relative"),
        ("brokers.0.properties_file", "server.properties"),
        ("brokers.0.properties_file", "/a\0b"),
        ("brokers.0.log_dirs", []),
        ("brokers.0.log_dirs.0", "data"),
        ("brokers.0.log_dir", "/misspelt"),
        ("brokers.0.metrics", ...),
        ("brokers.0.metrics.kind", "graphite"),
        ("brokers.0.driver.transport.kind", "telepathy"),
        ("brokers.0.driver.service.kind", "cron"),
        ("brokers.0.driver.service.start_command", []),
        ("brokers.0.driver.service.start_command", ["bin/kafka-server-start.sh", "-daemon", "{properties}"]),
        ("brokers.0.driver.service.pid_file", "pid"),
        ("brokers.0.driver.service.output_file", "out"),
        ("quorum.controllers.0.port", 0),
        ("quorum.controllers.0.port", 65536),
        ("quorum.controllers.0.base_properties", "base"),
        ("quorum.listener", "lower"),
        ("quorum.security_protocol", "TLS"),
    ],
)
def test_a_mistake_is_answered_with_its_field(path: str, value: Any) -> None:
    assert f"{path.removesuffix('.kind')}" in complaints(changed(path, value)).replace(".jolokia", "")


@pytest.mark.parametrize("kind", ["jolokia", "prometheus"])
def test_a_metrics_url_is_one(kind: str) -> None:
    assert f"brokers.0.metrics.{kind}.url" in complaints(changed("brokers.0.metrics", {"kind": kind, "url": "ftp://h"}))


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("quorum.controllers.0.id", 1, "node ids [1] are used twice: brokers and controllers share one id space"),
        ("brokers.1.id", 1, "node ids [1] are used twice"),
        ("brokers.1.properties_file", "/etc/kafka/1.properties", "properties_file ['/etc/kafka/1.properties'] belongs to two"),
        ("quorum.controllers.0.properties_file", "/etc/kafka/1.properties", "properties_file"),
        ("brokers.1.driver.service.pid_file", "/run/1.pid", "pid_file ['/run/1.pid'] belongs to two nodes"),
        ("brokers.1.log_dirs", ["/data/2", "/data/1"], "log_dirs ['/data/1'] belongs to two nodes"),
        ("brokers.0.log_dirs", ["/data/1", "/data/1"], "log_dirs ['/data/1']"),
        ("quorum.controllers.1.port", 12001, "port ['12001'] belongs to two nodes"),
    ],
)
def test_what_does_not_fit_together_is_named(path: str, value: Any, says: str) -> None:
    assert says in complaints(changed(path, value))


@pytest.mark.parametrize("missing", ["quorum", "zookeeper"])
def test_a_cluster_has_an_ensemble_or_a_quorum(missing: str) -> None:
    present = changed(missing, ...)
    ClusterSpec.model_validate(present)
    del present["quorum" if missing == "zookeeper" else "zookeeper"]
    assert "zookeeper and quorum are missing" in complaints(present)


@pytest.mark.parametrize("field", ["controllers", "controller_listener", "controller_security_protocol"])
def test_the_old_form_is_told_where_it_belongs_now(field: str) -> None:
    said = complaints(changed(field, "CONTROLLER"))
    assert f"{field}: no longer part of a cluster" in said
    assert "`wanted` of POST /plans and POST /migrations" in said


def test_two_hosts_may_use_the_same_paths_and_ports() -> None:
    spec = changed("brokers.1.properties_file", "/etc/kafka/1.properties")
    spec["brokers"][1]["host"] = "elsewhere"
    spec["quorum"]["controllers"][1] |= {"host": "elsewhere", "port": 12001}
    ClusterSpec.model_validate(spec)


def test_no_value_of_a_reference_is_repeated_in_an_error() -> None:
    """Whoever writes a secret where a reference belongs is not to find it in a log: pydantic's `input` is not for people."""
    assert "hunter2" not in complaints(changed("zookeeper.digest_auth", "user:hunter2"))
    assert "hunter2" not in complaints(changed("kafka.client_properties", "hunter2"))


def test_json_there_and_back() -> None:
    spec = cluster_spec()
    assert ClusterSpec.model_validate_json(spec.model_dump_json()) == spec
    assert ClusterSpec.model_validate(json.loads(json.dumps(GOOD))) == spec


def test_what_is_derived() -> None:
    spec = cluster_spec()
    assert spec.quorum_voters == "3001@127.0.0.1:12001,3002@127.0.0.1:12002,3003@127.0.0.1:12003"
    assert [node.id for node in spec.nodes] == [1, 2, 3, 3001, 3002, 3003]
    assert (spec.role(1), spec.role(3001)) == (Role.BROKER, Role.CONTROLLER)
    assert (spec.node_name(1), spec.node_name(3001)) == ("broker-1", "controller-3001")
    assert spec.node(3002).id == 3002


def test_it_is_frozen() -> None:
    with pytest.raises(ValidationError):
        cluster_spec().name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("path", "value", "is_the_same"),
    [
        ("kafka.bootstrap_servers", ["elsewhere:9092"], True),
        ("kafka.client_properties", "file:/etc/other", True),
        ("brokers.0.metrics.url", "http://elsewhere:1", True),
        ("quorum.controllers.0.metrics", {"kind": "prometheus", "url": "http://elsewhere:1"}, True),
        ("zookeeper.members", [{"host": "zk", "data_dir": "/data"}], True),
        ("zookeeper.session_timeout_seconds", 30.0, True),
        ("zookeeper.connect", "elsewhere:2181", False),
        ("zookeeper.digest_auth", "env:OTHER", False),
        ("brokers.0.properties_file", "/etc/other", False),
        ("brokers.0.log_dirs", ["/other"], False),
        ("quorum.controllers.0.port", 1, False),
        ("cluster_id", "another", False),
    ],
)
def test_what_only_says_how_to_look_is_told_from_what_is_looked_at(path: str, value: Any, is_the_same: bool) -> None:
    spec = ClusterSpec.model_validate(GOOD)
    other = ClusterSpec.model_validate(changed(path, value))
    assert other != spec
    assert other.looks_otherwise_at_the_same_as(spec) is is_the_same


@pytest.mark.parametrize(
    ("address", "host"),
    [("fd00::1:9093", "fd00::1"), ("[fd00::1]:9093", "fd00::1"), ("Kafka-1:9093", "kafka-1"), ("http://K:7071/metrics", "k")],
)
def test_the_host_of_an_address(address: str, host: str) -> None:
    assert host_of(address) == host

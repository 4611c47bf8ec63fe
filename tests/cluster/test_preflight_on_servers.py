"""The preflight on real servers: what is really wrong is found by its code, and is gone when it is mended.

One cluster serves all tests of this module. Files are edited and brokers go on from memory: a look reads the files. Each test
leaves the cluster as it was.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from kazoo.client import KazooClient

from activities.observing.observe import observe_for
from activities.zk_to_kraft.surveying import with_survey
from domain.checks.acceptance import blockers_in
from domain.cluster import BrokerSpec, ClusterSpec
from domain.configuration.properties import ENCODING, edit
from domain.decisions import Finding, Severity
from domain.observed.observation import Observation
from domain.records import ClusterRecord
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.preflight import preflight
from domain.zk_to_kraft.steps import KIND
from playground.by_hand import ByHand
from playground.clients import admin_client
from playground.cluster import PlaygroundCluster
from playground.field import Field
from playground.load import KEEP, Load
from playground.seed import Topic, seed

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

POLICY = ZkToKraftPolicy()
FILE_PROVIDER = "org.apache.kafka.common.config.provider.FileConfigProvider"
ALWAYS = {"PF06", "PF23", "PF27"}
"""All on one host; a cluster that has just begun; restarts that nobody measured. None is a blocker."""
SETTLING = 30.0
"""Seconds that a cluster on a busy machine may take until what was done to it, or mended, shows everywhere."""


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    directory = tmp_path_factory.mktemp("preflight")
    with PlaygroundCluster(directory / "cluster", announce=print) as cluster:
        seed(cluster.bootstrap_servers)
        yield Field(cluster, directory / "artefacts")


async def look(field: Field, record: ClusterRecord | None = None) -> Observation:
    """Whole: what does not answer for a moment is asked again."""
    deadline = time.monotonic() + SETTLING
    while True:
        record = record or field.record
        seen = await with_survey(await observe_for(KIND, record, field.ports, POLICY), record, POLICY, field.ports)
        if not seen.unanswered:
            return seen
        assert time.monotonic() < deadline, seen.unanswered


async def findings(field: Field, record: ClusterRecord | None = None) -> tuple[Finding, ...]:
    record = record or field.record
    return preflight(await look(field, record), record.spec, POLICY)


def codes(found: tuple[Finding, ...]) -> set[str]:
    return {finding.code for finding in found} - ALWAYS


async def until(asked: Callable[[], Awaitable[tuple[Finding, ...]]], wanted: set[str]) -> tuple[Finding, ...]:
    """Exactly these codes; what else a busy cluster shows for a moment passes by."""
    deadline = time.monotonic() + SETTLING
    while codes(found := await asked()) != wanted:
        assert time.monotonic() < deadline, (wanted ^ codes(found), [(f.code, f.object, f.observed) for f in found])
    return found


@contextmanager
def edited(field: Field, node_id: int, old: str, new: str) -> Iterator[None]:
    """Another text in a node's file; where `old` is empty, one more line."""
    path = Path(field.cluster.spec.node(node_id).properties_file)
    before = path.read_bytes()
    text = before.decode("latin-1")
    assert old in text
    path.write_text(text.replace(old, new) if old else f"{text}\n{new}\n", encoding="latin-1")
    try:
        yield
    finally:
        path.write_bytes(before)


@contextmanager
def znode(client: KazooClient, path: str, data: bytes | None) -> Iterator[None]:
    client.ensure_path(path.rpartition("/")[0])
    client.create(path, data)
    try:
        yield
    finally:
        client.delete(path, recursive=True)


async def test_the_playgrounds_own_cluster_has_no_blocker_and_is_surveyed(field: Field) -> None:
    found = await until(lambda: findings(field), set())
    assert blockers_in(found, POLICY) == ()
    assert not any(finding.is_unverifiable for finding in found)


async def test_a_look_leaves_nothing_behind_on_the_nodes(field: Field) -> None:
    before = names_beside_files(field)
    await look(field)
    assert names_beside_files(field) == before


def names_beside_files(field: Field) -> list[list[str]]:
    folders = [Path(node.properties_file).parent for node in field.cluster.spec.nodes]
    return [sorted(path.name for path in folder.iterdir()) for folder in folders]


async def test_what_a_provider_gives_is_judged_as_the_broker_runs_with_it(field: Field, tmp_path: Path) -> None:
    """The file has references, and only the broker reads what they are."""
    broker, hand, given = field.cluster.spec.brokers[1], ByHand(field.cluster), tmp_path / "given.properties"
    path = hand.properties_file(broker.id)
    before, found = path.read_bytes(), hand.properties(broker.id)
    values = {key: found[key] for key in ("inter.broker.protocol.version", "zookeeper.connect", "log.dirs", "listeners")}
    given.write_text(edit("", values), ENCODING)
    provider = {"config.providers": "file", "config.providers.file.class": FILE_PROVIDER}
    try:
        hand.put_into_force(broker.id, provider | {key: f"${{file:{given}:{key}}}" for key in values})
        await until(lambda: findings(field), {"PF39"})
        disk = (await look(field)).node(broker.id).disk
        assert disk is not None
        assert disk.file is not None
        assert disk.file.running == values
        hand.edit(broker.id, {"authorizer.class.name": f"${{file:{given}:authorizer}}"})
        given.write_text(edit("", values | {"authorizer": found["authorizer.class.name"]}), ENCODING)
        hand.put_into_force(broker.id, {})
        told = await until(lambda: findings(field), {"PF31", "PF39"})
        (authorizer,) = [finding for finding in told if finding.code == "PF31"]
        assert authorizer.expected == "authorizer.class.name=kafka.security.authorizer.AclAuthorizer in the file itself"
    finally:
        path.write_bytes(before)
        hand.put_into_force(broker.id, {})


FILES: dict[str, tuple[int, str, str, set[str], str]] = {
    "another protocol version": (2, "inter.broker.protocol.version=3.9", "inter.broker.protocol.version=3.8", {"PF02"}, "3.8"),
    "an id that is not explicit": (3, "broker.id=3", "# none", {"PF05", "PF45"}, "nor an id; meta.properties: "),
    "an id from the range of generated ones": (
        3,
        "",
        "reserved.broker.max.id=2",
        {"PF05", "PF39", "PF45"},
        "reserved.broker.max.id=2",
    ),
    "an authorizer without counterpart": (
        1,
        "kafka.security.authorizer.AclAuthorizer",
        "com.example.Mine",
        {"PF31", "PF39"},
        "com.example.Mine",
    ),
    "a policy that controllers do not have": (
        1,
        "",
        "create.topic.policy.class.name=com.example.NoSuchPolicy",
        {"PF34", "PF39", "PF45"},
        "neither in a jar",
    ),
    "a policy that they have": (
        1,
        "",
        "create.topic.policy.class.name=org.apache.kafka.server.policy.CreateTopicPolicy",
        {"PF39"},
        "CreateTopicPolicy",
    ),
    "a policy for configs": (
        1,
        "",
        "alter.config.policy.class.name=org.apache.kafka.server.policy.AlterConfigPolicy",
        {"PF34", "PF39"},
        "AlterConfigPolicy",
    ),
    "a control plane": (2, "", "control.plane.listener.name=CONTROL", {"PF37", "PF39", "PF45"}, "CONTROL"),
    "half-made settings": (3, "", "controller.listener.names=CONTROLLER", {"PF37", "PF39"}, "half-made settings"),
    "another chroot": (1, "/kafka", "/elsewhere", {"PF20"}, "/elsewhere"),
    "no controlled shutdown": (2, "", "controlled.shutdown.enable=false", {"PF27", "PF39"} - ALWAYS, "false"),
    "other super users": (3, "User:ANONYMOUS", "User:admin", {"PF30", "PF39"}, "User:ANONYMOUS is not among"),
    "a directory that is not described": (2, "log.dirs=", "log.dirs=/nowhere,", {"PF24"}, "/nowhere"),
    "a list that ends in a comma": (
        1,
        "",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,",
        {"PF39"},
        "SASL_SSL:SASL_SSL,",
    ),
    "a comment behind a value": (
        2,
        "num.io.threads=2",
        "num.io.threads=2 # two",
        {"PF39", "PF45"},
        "the # and what follows are part",
    ),
    "a setting that differs": (2, "num.io.threads=2", "num.io.threads=7", {"PF39"}, "a value of its own"),
    "a default that controllers apply": (
        2,
        "min.insync.replicas=2\nauto",
        "min.insync.replicas=1\nauto",
        {"PF35"},
        "broker-2: 1",
    ),
}
"""The file that is edited, what codes it gives besides PF44, and what is told. PF45: Kafka itself does not take it."""
NO_EDIT = {
    "a list that ends in a comma": "the migration would write the same line",
    "half-made settings": "the migration would write that line",
    "other super users": "Kafka tells no authorizer's settings",
}
"""Of which PF44 says nothing, and why."""


@pytest.mark.parametrize("case", FILES)
async def test_what_is_wrong_in_a_file_is_found(field: Field, case: str) -> None:
    node_id, old, new, wanted, told = FILES[case]
    with edited(field, node_id, old, new):
        found = await until(lambda: findings(field), wanted if case in NO_EDIT else wanted | {"PF44"})
    assert any(told in finding.observed for finding in found), found


async def test_a_file_that_java_cannot_read_is_a_blocker(field: Field) -> None:
    node = field.cluster.spec.node(2)
    with edited(field, 2, "", "ssl.keystore.location=C:\\users\\kafka.jks"):
        seen = await observe_for(KIND, field.record, field.ports, POLICY)
        (finding,) = preflight(seen, field.record.spec, POLICY)
    assert (finding.code, finding.severity, finding.object) == ("PF45", Severity.BLOCKER, "files of broker-2")
    assert f"{node.properties_file}, line " in finding.observed
    assert "character 25: " in finding.observed


async def test_a_log_directory_of_a_controller_that_is_used_and_a_port_that_is_taken(field: Field) -> None:
    spec = field.cluster.spec
    taken = spec.controllers[0].model_copy(
        update={"port": int(field.cluster.bootstrap_servers[0].rpartition(":")[2]), "log_dirs": spec.brokers[0].log_dirs}
    )
    record = with_spec(field, spec.with_quorum_changed(controllers=(taken, *spec.controllers[1:])))
    found = await until(lambda: findings(field, record), {"PF07"})
    assert len([finding for finding in found if finding.code == "PF07"]) == 2


async def test_an_id_of_a_broker_that_nobody_described(field: Field) -> None:
    spec = field.cluster.spec
    clash = spec.controllers[0].model_copy(update={"id": 3})
    record = with_spec(
        field,
        spec.model_copy(update={"brokers": spec.brokers[:2]}).with_quorum_changed(controllers=(clash, *spec.controllers[1:])),
    )
    found = await until(lambda: findings(field, record), {"PF04", "PF12", "PF19"})
    assert [finding.object for finding in found if finding.code == "PF04"] == ["controller-3"]


async def test_files_that_the_user_of_the_next_start_may_not_use(field: Field) -> None:
    """The start command becomes somebody else, and the node was started by hand as whoever runs this."""
    spec = field.cluster.spec
    broker = spec.brokers[1]
    command = ("setpriv", "--reuid=4242", "--regid=4242", "--clear-groups", *broker.driver.service.start_command)
    service = broker.driver.service.model_copy(update={"start_command": command})
    other = broker.model_copy(update={"driver": broker.driver.model_copy(update={"service": service})})
    record = with_spec(field, spec.model_copy(update={"brokers": (spec.brokers[0], other, spec.brokers[2])}))
    found = await until(lambda: findings(field, record), {"PF43"})
    (finding,) = (f for f in found if f.code == "PF43")
    assert finding.object == "broker-2"
    assert "by user 4242" in finding.observed


async def test_a_wrapper_whose_pid_is_in_the_pid_file(field: Field) -> None:
    broker = field.cluster.spec.brokers[1]
    with wrapped(broker) as pid:
        found = await until_seen(field, {"PF47"})
    (finding,) = (f for f in found if f.code == "PF47")
    assert finding.object == "broker-2"
    assert f"echo {pid} > {broker.driver.service.pid_file}" in finding.fix
    await until(lambda: findings(field), set())


@contextmanager
def wrapped(broker: BrokerSpec) -> Iterator[int]:
    """A shell in its pid file that names the node's file: as of a script that starts java without `exec`."""
    pid_file = Path(broker.driver.service.pid_file)
    before = pid_file.read_bytes()
    command = ("sh", "-c", "sleep 300; true", "sh", broker.properties_file)
    with subprocess.Popen(command, start_new_session=True) as wrapper:
        try:
            pid_file.write_text(f"{wrapper.pid}\n", encoding="ascii")
            yield int(before)
        finally:
            pid_file.write_bytes(before)
            os.killpg(wrapper.pid, signal.SIGKILL)


def with_spec(field: Field, spec: ClusterSpec) -> ClusterRecord:
    return field.record.model_copy(update={"spec": spec})


MIGRATION = {"version": 0, "kraft_controller_id": 3001, "kraft_metadata_offset": 105, "kraft_controller_epoch": 2}
NO_TYPE = {"version": 1, "acls": [{"principal": "ann", "permissionType": "Allow", "operation": "Read", "host": "*"}]}
PASSWORD = "listener.name.internal.ssl.keystore.password"
ENCRYPTED = (
    "keyLength:128,salt:c2FsdA==,keyFactoryAlgorithm:,cipherAlgorithm:AES/CBC/PKCS5Padding,iterations:4096,"
    "encryptedPassword:c2VjcmV0,passwordLength:6,initializationVector:AAAA"
)
ZNODES: dict[str, tuple[str, bytes | None, set[str], str]] = {
    "an earlier attempt": ("/migration", json.dumps(MIGRATION).encode(), {"PF10"}, "offset 105"),
    "a /migration without content": ("/migration", None, {"PF10"}, "cannot be parsed"),
    "an ACL whose principal has no type": ("/kafka-acl/Topic/poisoned", json.dumps(NO_TYPE).encode(), {"PF15"}, "principal"),
    "a prefix that is an asterisk": (
        "/kafka-acl-extended/prefixed/Topic/*",
        json.dumps({"version": 1, "acls": []}).encode(),
        {"PF15"},
        "wildcard",
    ),
    "a topic's configs that are no JSON": ("/config/topics/poisoned", b"{", {"PF17"}, "configs of a topic"),
    "configs of a dead broker": (
        "/config/brokers/9",
        json.dumps({"version": 1, "config": {"log.cleaner.threads": "2"}}).encode(),
        {"PF12"},
        "not live",
    ),
    "a subscription of client metrics": ("/config/client-metrics/all", b"{}", {"PF18"}, "client metrics"),
    "a huge znode": (
        "/config/topics/huge",
        json.dumps({"version": 1, "config": {"padding": "x" * 700_000}}).encode(),
        {"PF17", "PF21"},
        "bytes",
    ),
}


@pytest.mark.parametrize("case", ZNODES)
async def test_what_is_wrong_in_zookeeper_is_found(field: Field, case: str) -> None:
    path, data, wanted, told = ZNODES[case]
    with field.hand.zookeeper() as client, znode(client, path, data):
        found = await until(lambda: findings(field), wanted | {"PF19"})
    assert any(told in finding.observed for finding in found), found
    assert codes(await until(lambda: findings(field), set())) == set()


async def test_a_password_that_no_broker_has_the_secret_of(field: Field) -> None:
    """As an older cluster may have left it: today's brokers refuse to store one without the secret."""
    config = json.dumps({"version": 1, "config": {PASSWORD: ENCRYPTED}}).encode()
    with field.hand.zookeeper() as client, znode(client, "/config/brokers/3", config):
        found = await until(lambda: findings(field), {"PF19", "PF32"})
    assert any("password.encoder.secret" in finding.object for finding in found)


async def test_a_foreign_client_is_named_as_long_as_it_is_connected(field: Field) -> None:
    with field.hand.zookeeper() as client:
        session, _ = client.client_id
        found = await until(lambda: findings(field), {"PF19"})
        (finding,) = (f for f in found if f.code == "PF19")
        assert f"{session & (2**64 - 1):#x}" in finding.observed
        assert finding.severity is Severity.WARNING
    await until(lambda: findings(field), set())


async def test_throttles_of_a_broker_and_of_a_topic(field: Field) -> None:
    set_config(field, ResourceType.BROKER, "1", "leader.replication.throttled.rate", "1000000")
    set_config(field, ResourceType.TOPIC, "orders", "leader.replication.throttled.replicas", "*")
    found = await until(lambda: findings(field), {"PF18"})
    assert [f.object for f in found if f.code == "PF18"] == ["/config/brokers/1", "/config/topics/orders"]
    set_config(field, ResourceType.BROKER, "1", "leader.replication.throttled.rate", None)
    set_config(field, ResourceType.TOPIC, "orders", "leader.replication.throttled.replicas", None)
    await until(lambda: findings(field), set())


def set_config(field: Field, kind: ResourceType, name: str, key: str, value: str | None) -> None:
    how = AlterConfigOpType.SET if value is not None else AlterConfigOpType.DELETE
    entry = ConfigEntry(key, value, incremental_operation=how)
    resource = ConfigResource(kind, name, incremental_configs=[entry])
    admin = admin_client(field.cluster.bootstrap_servers)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)


async def test_a_topic_with_one_replica(field: Field) -> None:
    admin = admin_client(field.cluster.bootstrap_servers)
    for future in admin.create_topics([NewTopic("alone", num_partitions=1, replication_factor=1)]).values():
        future.result(30)
    found = await until(lambda: findings(field), {"PF22"})
    assert {(f.object.partition("-")[0], f.severity) for f in found if f.code == "PF22"} == {
        ("broker", Severity.BLOCKER),
        ("topic alone", Severity.WARNING),
    }
    given_up = ZkToKraftPolicy(may_be_unavailable=("alone",))
    assert blockers_in(preflight(await look(field), field.cluster.spec, given_up), given_up) == ()
    field.delete_topics(["alone"])
    await until(lambda: findings(field), set())


async def test_a_partition_without_metadata_and_one_of_another_topic(field: Field) -> None:
    first, second = partition_files(Path(field.cluster.spec.brokers[1].log_dirs[0]))[:2]
    before = first.read_bytes(), second.read_bytes()
    first.unlink()
    second.write_text("version: 0\ntopic_id: Zm9vYmFyZm9vYmFyZm9vYg\n", encoding="ascii")
    found = await until(lambda: findings(field), {"PF25"})
    told = {f.object: f for f in found if f.code == "PF25"}
    assert told.keys() == {f"broker-2 {path.parent}" for path in (first, second)}
    other = told[f"broker-2 {second.parent}"]
    assert "Zm9vYmFyZm9vYmFyZm9vYg" in other.observed
    assert before[1].decode().split()[-1] in other.observed, "the znode's id"
    assert "the replica is assigned to this broker and in sync" in other.observed
    assert other.fix.startswith("Do not elect a controller, restart a broker or delete anything. ")
    first.write_bytes(before[0])
    second.write_bytes(before[1])
    assert codes(await findings(field)) == set()


def partition_files(log_dir: Path) -> list[Path]:
    return sorted(log_dir.glob("orders-*/partition.metadata"))


LOST = Topic("lost.id", 3, config={"min.insync.replicas": "2"} | KEEP)


async def test_a_lost_topic_id_is_put_back_by_its_fix_and_nothing_is_lost(field: Field, tmp_path: Path) -> None:
    """As a tool older than topics' ids leaves it, while clients write. The fix is typed as it stands."""
    path, load = f"/brokers/topics/{LOST.name}", Load(field.cluster.bootstrap_servers, tmp_path / "load", topics=(LOST,))
    with load, field.hand.zookeeper() as client:
        load.await_acknowledged(200)
        whole = json.loads(client.get(path)[0])
        topic_id = whole.pop("topic_id")
        client.set(path, json.dumps(whole | {"version": 1}).encode())
        found = await until(lambda: findings(field), {"PF17", "PF19"})
        (lost,) = (f for f in found if f.code == "PF17")
        assert topic_id in lost.observed
        assert len(field.hand.type_fix(lost.fix)) == 2, lost.fix
        assert json.loads(client.get(path)[0]) == whole | {"version": 3, "topic_id": topic_id}
        load.await_acknowledged(200)
    await until(lambda: findings(field), set())
    report = load.verify()
    print(f"an id was lost and put back: {report}")
    assert report.lost == frozenset()
    field.delete_topics([LOST.name])
    await until(lambda: findings(field), set())


async def test_a_deletion_that_waits_for_a_dead_broker(field: Field) -> None:
    field.create_topics(["leaving"])
    field.cluster.kill_node(3)
    field.delete_topics(["leaving"])
    found = await until_seen(field, {"PF12", "PF13", "PF22"})
    assert any(f.observed == "leaving" for f in found if f.code == "PF13")
    field.cluster.start_node(3)
    await until(lambda: findings(field), set())


async def test_a_dead_id_in_an_assignment(field: Field) -> None:
    """The last one: what is assigned to a broker that never was cannot be deleted any more."""
    topic = {"version": 3, "topic_id": "Zm9vYmFyZm9vYmFyZm9vYg", "partitions": {"0": [1, 9]}}
    with field.hand.zookeeper() as client:
        client.create("/brokers/topics/ghost", json.dumps(topic | {"adding_replicas": {}, "removing_replicas": {}}).encode())
    found = await until_seen(field, {"PF12"})
    assert any(f.object == "broker 9" for f in found)


async def until_seen(field: Field, wanted: set[str]) -> tuple[Finding, ...]:
    """These codes at least."""
    deadline = time.monotonic() + 2 * SETTLING
    while not wanted <= codes(found := await findings(field)):
        assert time.monotonic() < deadline, (wanted ^ codes(found), [(f.code, f.object, f.observed) for f in found])
    return found

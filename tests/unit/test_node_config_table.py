"""The table of stages against files as people keep them: the property matrix of Kafka's guide (internals, section 1.9)."""

import difflib
from itertools import pairwise

import pytest

from domain.cluster import ClusterSpec, Role
from domain.configuration.properties import parse
from domain.errors import Permanent
from domain.zk_to_kraft.node_config import (
    FEATURES,
    KRAFT_AUTHORIZER,
    MIGRATION_FLAG,
    Feature,
    controller_file,
    node_file,
    stage_of,
)
from domain.zk_to_kraft.steps import NodeStage
from tests.unit.conftest import CONNECT, broker_text, cluster_spec

SPEC = cluster_spec()
VOTERS = "3001@127.0.0.1:12001,3002@127.0.0.1:12002,3003@127.0.0.1:12003"

SECURED = """\
# A broker with all that security brings.
broker.id = 1
broker.id.generation.enable=false
reserved.broker.max.id=2000
listeners=INTERNAL://h:9092,EXTERNAL://h:9093,REPLICATION://h:9094
advertised.listeners=INTERNAL://h:9092,EXTERNAL://h:9093
listener.security.protocol.map=INTERNAL:SASL_SSL,EXTERNAL:SASL_SSL,\\
    REPLICATION:SSL
inter.broker.listener.name=INTERNAL
control.plane.listener.name=REPLICATION
inter.broker.protocol.version=3.9-IV0
# ZooKeeper over TLS
zookeeper.connect=z1:2182,z2:2182/kafka
zookeeper.ssl.client.enable=true
zookeeper.ssl.keystore.password=zk-secret
zookeeper.set.acl=true
sasl.enabled.mechanisms=SCRAM-SHA-512
sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512
listener.name.internal.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
    username="kafka" \\
    password="p";
ssl.keystore.location=/etc/kafka/keystore.p12
ssl.keystore.password=ks
principal.builder.class=com.example.Principals
authorizer.class.name=kafka.security.authorizer.AclAuthorizer
super.users=User:CN=kafka;User:kafka
password.encoder.secret=encode
password.encoder.old.secret=encoded
delegation.token.secret.key=tokens
num.partitions=12
min.insync.replicas=2
default.replication.factor=3
create.topic.policy.class.name=com.example.Policy
log.dirs=/data/1,/data/2
metadata.log.dir=/data/meta
broker.rack=a
"""

FILES = {
    "node-id": broker_text(1).replace("broker.id", "node.id"),
    "playground-1": broker_text(1),
    "playground-2": broker_text(2),
    "playground-3": broker_text(3),
    "secured": SECURED,
}
BROKER = SPEC.brokers[0]
CONTROLLER = SPEC.controllers[0]


def spec_with(**changes: object) -> ClusterSpec:
    return ClusterSpec.model_validate(SPEC.model_dump() | changes)


def owner(name: str) -> int:
    return int(name.removeprefix("playground-")) if name.startswith("playground") else 1


def rolled(name: str, stage: NodeStage) -> str:
    """A broker's file taken from stage to stage, as a migration does."""
    text = FILES[name]
    for each in (NodeStage.MIGRATION, NodeStage.KRAFT):
        if stage is not NodeStage.ZOOKEEPER:
            text = node_file(text, SPEC, SPEC.node(owner(name)), each)
        if each is stage:
            break
    return text


def controller_at(name: str, stage: NodeStage, base: str | None = None) -> str:
    text = controller_file(SPEC, CONTROLLER, base, FILES[name])
    return text if stage is NodeStage.MIGRATION else node_file(text, SPEC, CONTROLLER, stage)


every_file = pytest.mark.parametrize("name", FILES)
forward = pytest.mark.parametrize("stage", [NodeStage.MIGRATION, NodeStage.KRAFT])


@every_file
@pytest.mark.parametrize("stage", list(NodeStage))
def test_a_brokers_file_is_in_the_stage_it_was_made_for(name: str, stage: NodeStage) -> None:
    assert stage_of(parse(rolled(name, stage)), Role.BROKER) is stage


@every_file
@forward
def test_a_controllers_file_is_in_the_stage_it_was_made_for(name: str, stage: NodeStage) -> None:
    assert stage_of(parse(controller_at(name, stage)), Role.CONTROLLER) is stage


def test_no_two_stages_of_a_role_look_alike() -> None:
    for role in Role:
        features = [f for (_, r), f in FEATURES.items() if r is role]
        assert len(set(features)) == len(features)


@every_file
@forward
def test_an_edit_done_twice_is_done_once(name: str, stage: NodeStage) -> None:
    text = rolled(name, stage)
    assert node_file(text, SPEC, SPEC.node(owner(name)), stage) == text
    text = controller_at(name, stage)
    assert node_file(text, SPEC, CONTROLLER, stage) == text


@every_file
def test_two_stages_at_once_mean_the_same_as_one_after_the_other(name: str) -> None:
    at_once = node_file(FILES[name], SPEC, SPEC.node(owner(name)), NodeStage.KRAFT)
    assert parse(at_once) == parse(rolled(name, NodeStage.KRAFT))


# The diff


NAMED = {
    NodeStage.MIGRATION: {
        MIGRATION_FLAG,
        "controller.quorum.voters",
        "controller.listener.names",
        "listener.security.protocol.map",
    },
    NodeStage.KRAFT: {
        "broker.id",
        "node.id",
        "process.roles",
        "authorizer.class.name",
        "broker.id.generation.enable",
        "reserved.broker.max.id",
        "control.plane.listener.name",
        "inter.broker.protocol.version",
    },
}
NAMED_PREFIXES = {NodeStage.MIGRATION: (), NodeStage.KRAFT: ("zookeeper.", "password.encoder.")}


@every_file
@forward
def test_the_diff_touches_only_the_named_keys(name: str, stage: NodeStage) -> None:
    before = rolled(name, NodeStage.ZOOKEEPER if stage is NodeStage.MIGRATION else NodeStage.MIGRATION)
    after = node_file(before, SPEC, SPEC.node(owner(name)), stage)
    old, new = parse(before), parse(after)
    changed = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
    assert {k for k in changed if not k.startswith(NAMED_PREFIXES[stage])} <= NAMED[stage]
    removed = [d[2:] for d in difflib.ndiff(before.splitlines(True), after.splitlines(True)) if d.startswith("- ")]
    assert not any(line.lstrip().startswith(("#", "!")) for line in removed), "comments stay"
    kept = [line for line in before.splitlines(True) if line not in removed]
    rest = iter(after.splitlines(True))
    assert all(any(line == other for other in rest) for line in kept), "what stays keeps its order"


def test_the_diff_of_roll_1_is_what_a_person_would_have_typed() -> None:
    after = rolled("playground-1", NodeStage.MIGRATION)
    assert after == FILES["playground-1"] + (
        f"controller.quorum.voters={VOTERS}\n"
        "controller.listener.names=CONTROLLER\n"
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,"
        "CONTROLLER:PLAINTEXT\n"
        f"{MIGRATION_FLAG}=true\n"
    )


# The matrix


@every_file
def test_a_hybrid_broker(name: str) -> None:
    before, after = parse(FILES[name]), parse(rolled(name, NodeStage.MIGRATION))
    assert before.items() - {("listener.security.protocol.map", before.get("listener.security.protocol.map"))} <= after.items()
    assert after[MIGRATION_FLAG] == "true"
    assert after["controller.quorum.voters"] == VOTERS
    assert after["controller.listener.names"] == "CONTROLLER"
    assert after["listener.security.protocol.map"].endswith(",CONTROLLER:PLAINTEXT")
    assert "process.roles" not in after


@every_file
def test_a_kraft_broker(name: str) -> None:
    after = parse(rolled(name, NodeStage.KRAFT))
    assert (after["process.roles"], after["node.id"]) == ("broker", str(owner(name)))
    assert after["authorizer.class.name"] == KRAFT_AUTHORIZER
    assert after["controller.quorum.voters"] == VOTERS
    assert after["listener.security.protocol.map"].endswith(",CONTROLLER:PLAINTEXT")
    forbidden = {
        "broker.id",
        "inter.broker.protocol.version",
        "control.plane.listener.name",
        "broker.id.generation.enable",
        "reserved.broker.max.id",
    }
    assert not forbidden & after.keys()
    assert not [key for key in after if key.startswith(("zookeeper.", "password.encoder."))]
    kept = {"listeners", "log.dirs", "super.users", "min.insync.replicas"}
    assert {k: after[k] for k in kept} == {k: parse(FILES[name])[k] for k in kept}


@every_file
def test_a_controller_in_migration(name: str) -> None:
    after = parse(controller_at(name, NodeStage.MIGRATION))
    assert (after["process.roles"], after["node.id"]) == ("controller", "3001")
    assert after["listeners"] == "CONTROLLER://127.0.0.1:12001"
    assert after["log.dirs"] == "/data/3001"
    assert after["zookeeper.connect"] == CONNECT, "what people told us, not what one broker's file says"
    assert after[MIGRATION_FLAG] == "true"
    assert after["authorizer.class.name"] == KRAFT_AUTHORIZER
    assert after["controller.quorum.voters"] == VOTERS
    assert "CONTROLLER:PLAINTEXT" in after["listener.security.protocol.map"]
    assert not {"inter.broker.protocol.version", "control.plane.listener.name", "broker.id"} & after.keys()


@every_file
def test_a_controller_at_the_end(name: str) -> None:
    after = parse(controller_at(name, NodeStage.KRAFT))
    assert not [key for key in after if key.startswith(("zookeeper.", "password.encoder."))]
    assert after["authorizer.class.name"] == KRAFT_AUTHORIZER
    assert (after["process.roles"], after["node.id"]) == ("controller", "3001")


def test_a_controller_inherits_the_providers_that_resolve_what_it_inherits() -> None:
    providers = (
        "config.providers=file\nconfig.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider\n"
    )
    text = f"{SECURED}\n{providers}ssl.key.password=${{file:/etc/kafka/secrets:key}}\n"
    after = parse(controller_file(SPEC, SPEC.controllers[0], None, text))
    wanted = parse(providers) | {"ssl.key.password": "${file:/etc/kafka/secrets:key}"}
    assert {key: after.get(key) for key in wanted} == wanted


def test_a_controller_inherits_what_it_must() -> None:
    broker, after = parse(SECURED), parse(controller_at("secured", NodeStage.MIGRATION))
    inherited = {
        "inter.broker.listener.name",
        "zookeeper.ssl.client.enable",
        "zookeeper.ssl.keystore.password",
        "zookeeper.set.acl",
        "sasl.enabled.mechanisms",
        "sasl.mechanism.inter.broker.protocol",
        "listener.name.internal.scram-sha-512.sasl.jaas.config",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "principal.builder.class",
        "super.users",
        "password.encoder.secret",
        "password.encoder.old.secret",
        "delegation.token.secret.key",
        "num.partitions",
        "min.insync.replicas",
        "default.replication.factor",
        "create.topic.policy.class.name",
    }
    assert {key: after.get(key) for key in inherited} == {key: broker[key] for key in inherited}
    names = {entry.partition(":")[0] for entry in after["listener.security.protocol.map"].split(",")}
    assert {"INTERNAL", "CONTROLLER"} <= names, "it talks to brokers, so their listener has to be known"


def test_a_controller_never_takes_what_is_the_brokers_own() -> None:
    after = parse(controller_at("secured", NodeStage.MIGRATION))
    own = {"broker.id", "advertised.listeners", "broker.rack", "metadata.log.dir", "broker.id.generation.enable"}
    assert not own & after.keys()
    assert "9092" not in after["listeners"]
    assert "/data/1" not in after["log.dirs"].split(",")


# A base file of the operator's


BASE = """\
# Controllers, by the platform team
node.id=0
! heap is set elsewhere
metadata.log.segment.bytes = 1048576
listener.security.protocol.map=CONTROLLER:SASL_SSL
num.partitions: 99
zookeeper.connect=left:2181
inter.broker.protocol.version=3.9
control.plane.listener.name=X
"""


def test_a_base_file_keeps_its_lines() -> None:
    lines = controller_at("secured", NodeStage.MIGRATION, BASE).splitlines()
    kept = [
        "# Controllers, by the platform team",
        "! heap is set elsewhere",
        "metadata.log.segment.bytes = 1048576",
        "num.partitions: 99",
    ]
    assert [line for line in lines if line in kept] == kept
    assert [line.partition("=")[0] for line in lines if line.startswith("node.id")] == ["node.id"]
    assert lines.index("node.id=3001") < lines.index("! heap is set elsewhere")


def test_a_base_files_own_security_is_not_weakened() -> None:
    entries = parse(controller_at("secured", NodeStage.MIGRATION, BASE))["listener.security.protocol.map"].split(",")
    assert "CONTROLLER:SASL_SSL" in entries
    assert {"INTERNAL:SASL_SSL", "EXTERNAL:SASL_SSL", "REPLICATION:SSL"} <= set(entries)
    assert len(entries) == 4


def test_a_base_file_does_not_outrank_the_specification() -> None:
    after = parse(controller_at("secured", NodeStage.MIGRATION, BASE))
    assert after["zookeeper.connect"] == CONNECT
    without = BASE.replace("zookeeper.connect=left:2181\n", "")
    assert parse(controller_at("secured", NodeStage.MIGRATION, without))["zookeeper.connect"] == CONNECT


def test_a_base_file_loses_what_a_controller_must_not_have() -> None:
    after = parse(controller_at("secured", NodeStage.MIGRATION, BASE))
    assert not {"inter.broker.protocol.version", "control.plane.listener.name"} & after.keys()
    assert after["num.partitions"] == "99", "what it says itself is not inherited over it"
    assert after["password.encoder.secret"] == "encode", "what it does not say is"


# Listener names


def test_a_controller_listener_that_is_mapped_already_keeps_its_protocol() -> None:
    text = FILES["playground-1"] + "listener.security.protocol.map=PLAINTEXT:PLAINTEXT, controller:SSL\n"
    after = parse(node_file(text, SPEC, BROKER, NodeStage.MIGRATION))
    assert after["listener.security.protocol.map"] == "PLAINTEXT:PLAINTEXT, controller:SSL"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("PLAINTEXT:PLAINTEXT,", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"),
        ("PLAINTEXT:PLAINTEXT,, ", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"),
        ("PLAINTEXT : PLAINTEXT, B:SSL ,", "PLAINTEXT : PLAINTEXT, B:SSL,CONTROLLER:PLAINTEXT"),
        ("PLAINTEXT:PLAINTEXT,MYCONTROLLER:SSL", "PLAINTEXT:PLAINTEXT,MYCONTROLLER:SSL,CONTROLLER:PLAINTEXT"),
        ("PLAINTEXT:PLAINTEXT,CONTROLLER:X:SSL", "PLAINTEXT:PLAINTEXT,CONTROLLER:X:SSL,CONTROLLER:PLAINTEXT"),
        (",", "CONTROLLER:PLAINTEXT"),
        ("PLAINTEXT:PLAINTEXT, controller : SSL,", "PLAINTEXT:PLAINTEXT, controller : SSL,"),
    ],
)
def test_a_map_gets_no_empty_entry_before_ours(written: str, expected: str) -> None:
    """Kafka 3.9.2 drops empty entries at the end of the map, and refuses the file for one that is anywhere else."""
    text = FILES["playground-1"] + f"listener.security.protocol.map={written}\n"
    made = node_file(text, SPEC, BROKER, NodeStage.MIGRATION)
    assert parse(made)["listener.security.protocol.map"] == expected
    assert node_file(made, SPEC, BROKER, NodeStage.MIGRATION) == made


@pytest.mark.parametrize("base", [None, "", "listener.security.protocol.map=CONTROLLER:PLAINTEXT,\n"])
def test_a_controllers_map_has_no_empty_entry(base: str | None) -> None:
    broker = FILES["playground-1"] + "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,B:SSL,\n"
    after = parse(controller_file(SPEC, SPEC.controllers[0], base, broker))
    assert "" not in after["listener.security.protocol.map"].split(",")


def test_the_specifications_protocol_is_mapped() -> None:
    spec = SPEC.with_quorum_changed(listener="QUORUM", security_protocol="SSL")
    after = parse(node_file(FILES["secured"], spec, BROKER, NodeStage.MIGRATION))
    assert after["listener.security.protocol.map"].endswith("REPLICATION:SSL,QUORUM:SSL")
    assert after["controller.listener.names"] == "QUORUM"


# Stages that are not


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({MIGRATION_FLAG: "false"}, "the flag is off, the quorum is known"),
        ({"controller.listener.names": None}, "voters without the listener's name"),
        ({"zookeeper.connect": None}, "the flag without ZooKeeper"),
        ({"process.roles": "broker"}, "a role beside ZooKeeper"),
    ],
)
def test_a_half_edited_broker_file_fits_no_stage(change: dict[str, str | None], why: str) -> None:
    properties = parse(rolled("playground-1", NodeStage.MIGRATION)) | {k: v for k, v in change.items() if v is not None}
    properties = {k: v for k, v in properties.items() if k not in {key for key, value in change.items() if value is None}}
    assert stage_of(properties, Role.BROKER) is None, why


def test_there_is_no_forward_edit_to_zookeeper() -> None:
    with pytest.raises(Permanent, match="no forward edit"):
        node_file(FILES["playground-1"], SPEC, BROKER, NodeStage.ZOOKEEPER)
    with pytest.raises(Permanent, match="controller-3001"):
        node_file(controller_at("secured", NodeStage.MIGRATION), SPEC, CONTROLLER, NodeStage.ZOOKEEPER)


def test_an_authorizer_that_nobody_knows_stays() -> None:
    text = "broker.id=1\nzookeeper.connect=z:1\nauthorizer.class.name=com.example.Mine\n"
    assert parse(node_file(text, SPEC, BROKER, NodeStage.KRAFT))["authorizer.class.name"] == "com.example.Mine"
    none = parse(node_file("broker.id=1\nzookeeper.connect=z:1\n", SPEC, BROKER, NodeStage.KRAFT))
    assert "authorizer.class.name" not in none


def test_features_only_ever_come_then_go() -> None:
    """A roll adds before it removes: no file on the way has both lost ZooKeeper and not met the quorum."""
    stages = [FEATURES[stage, Role.BROKER] for stage in NodeStage]
    for before, after in pairwise(stages):
        assert before & after
    assert Feature.QUORUM in stages[1] & stages[2]

"""Files that something else writes: found before anything is edited, and quoted without a secret."""

from typing import Any

import pytest

from activities.ports.nodes import FileContent
from domain.cluster import ConfigurationManagement
from domain.decisions import Severity
from domain.diagnosis.machines.file_owners import Sign, signs_in_command, signs_in_file, signs_in_script
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.preflight import preflight
from playground.fakes.cluster import FakeCluster
from playground.fakes.spec import HOOK
from tests.unit.conftest import broker_text
from tests.unit.test_node_config_table import FILES
from tests.unit.test_surveying import surveyed, write

PATH = "/etc/kafka/server.properties"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("# Maintained by Ansible", "Maintained by Ansible"),
        ("##### This file is managed by Puppet. token=s3cret", "managed by Puppet"),
        ("# Ansible managed: /srv/templates/s3cret.j2 modified on 2026-01-01", "Ansible managed"),
        (
            "# Any changes to this file will be ignored and overwritten",
            "Any changes to this file will be ignored and overwritten",
        ),
        ("! DO NOT EDIT", "DO NOT EDIT"),
        ("# auto-generated on start", "auto-generated"),
        ("# Local changes will be overwritten.", "Local changes will be overwritten"),
        ("advertised.listeners=CLIENT://advertised-address-placeholder:9092", "advertised-address-placeholder"),
        ("ssl.keystore.password=${strimzienv:CERTS_STORE_PASSWORD}", "${strimzienv:CERTS_STORE_PASSWORD}"),
        ("ssl.key=${strimzidir:/opt/certs:node.key}", "${strimzidir:/opt/certs:node.key}"),
        ("broker.id=${KAFKA_BROKER_ID}", "${KAFKA_BROKER_ID}"),
        ("broker.id={{ broker_id }}", "{{ broker_id }}"),
        ("broker.id=<%= @broker_id %>", "<%= @broker_id %>"),
        ("# broker.id=${KAFKA_BROKER_ID}", None),
        ("ssl.key.password=${securepass:/etc/kafka/security.properties:ssl.key.password}", None),
        ("ssl.key.password=${env:KEY_PASSWORD}", None),
        ("sasl.kerberos.principal.to.local.rules=RULE:[1:$1@$0](.*@EXAMPLE)s/@.*//,DEFAULT", None),
        ("# The id must never change: ask the platform team before you edit", None),
    ],
)
def test_signs_in_a_file(line: str, says: str | None) -> None:
    found = signs_in_file(PATH, f"broker.id=1\n{line}\n")
    assert found == (() if says is None else (Sign(where=f"line 2 of {PATH}", says=says),))
    assert "s3cret" not in str(found)


@pytest.mark.parametrize("name", FILES)
def test_files_of_people_have_no_sign(name: str) -> None:
    assert signs_in_file(PATH, FILES[name]) == ()


def test_of_a_base_file_a_banner_is_no_sign_and_a_placeholder_is() -> None:
    text = "# Maintained by Ansible\nssl.key.password=${KEY}\n"
    assert [sign.says for sign in signs_in_file(PATH, text, is_edited=False)] == ["${KEY}"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('cp base.properties "$0"; exec bin/kafka-server-start.sh "$0"', ["cp … $0"]),
        (
            "cp /etc/base server.properties; echo password=s3cret >> server.properties",
            ["cp … server.properties", "> server.properties"],
        ),
        (f"envsubst < /etc/template > {PATH} && exec java kafka.Kafka {PATH}", [f"> {PATH}"]),
        ("sed -i s/ID/$ID/ $CONF/server.properties; exec x", ["sed … $CONF/server.properties"]),
        ("render | tee {properties} && exec x {properties}", ["tee … {properties}"]),
        ("sed s/x/y/ server.properties > /tmp/other", []),
        ("cp server.properties /backup/; exec x", []),
        ("exec bin/kafka-server-start.sh $0 > /var/log/kafka.out 2>&1", []),
    ],
)
def test_a_start_command_that_writes_the_file(text: str, says: list[str]) -> None:
    found = signs_in_command(("sh", "-c", text, "{properties}"), PATH)
    assert [sign.says for sign in found] == says
    assert "s3cret" not in str(found)


@pytest.mark.parametrize("program", ["/etc/confluent/docker/run", "/opt/bitnami/scripts/kafka/entrypoint.sh"])
def test_a_launcher_of_an_image_is_one(program: str) -> None:
    assert [sign.says for sign in signs_in_command((program, "{properties}"), PATH)] == [program]


def test_a_script_is_read_by_its_lines() -> None:
    text = "#!/bin/sh\n# cp a $1\ncp /etc/base $1\nexec java kafka.Kafka $1\n"
    assert signs_in_script("/opt/start.sh", text, PATH, ["{properties}"]) == (
        Sign(where="line 3 of /opt/start.sh", says="cp … $1"),
    )


async def found(cluster: FakeCluster) -> list[Any]:
    seen = await surveyed(cluster)
    return [f for f in preflight(seen, cluster.spec, ZkToKraftPolicy()) if f.code == "PF48"]


def with_driver(cluster: FakeCluster, node_id: int, **parts: Any) -> None:
    broker = cluster.spec.node(node_id)
    changed = broker.model_copy(update={"driver": broker.driver.model_copy(update=parts)})
    brokers = tuple(changed if b.id == node_id else b for b in cluster.spec.brokers)
    cluster.spec = cluster.spec.model_copy(update={"brokers": brokers})


async def test_a_managed_file_blocks_unless_its_management_will_be_paused() -> None:
    cluster = FakeCluster()
    assert await found(cluster) == []
    write(cluster, 1, "# Maintained by Ansible")
    (finding,) = await found(cluster)
    path = cluster.spec.node(1).properties_file
    assert (finding.severity, finding.object) == (Severity.BLOCKER, f"broker-1 {path}")
    assert f"of {path} has `Maintained by Ansible`" in finding.observed
    with_driver(cluster, 1, configuration_management=ConfigurationManagement.model_validate(HOOK))
    (finding,) = await found(cluster)
    assert finding.severity is Severity.WARNING


async def test_a_script_that_renders_the_file_is_found_and_one_that_cannot_be_read_is_said() -> None:
    cluster = FakeCluster()
    service = cluster.spec.node(1).driver.service.model_copy(update={"start_command": ("/opt/start.sh", "{properties}")})
    with_driver(cluster, 1, service=service)
    machine = cluster.nodes[1].machine
    machine.write("/opt/start.sh", FileContent(b"#!/bin/sh\ncp /etc/base $1\nexec java kafka.Kafka $1\n", 0o755, 0, 0))
    (finding,) = await found(cluster)
    assert "line 2 of /opt/start.sh has `cp … $1`" in finding.observed
    machine.remove("/opt/start.sh")
    machine.make_dir("/opt/start.sh")
    (finding,) = await found(cluster)
    assert (finding.severity, finding.is_unverifiable) == (Severity.WARNING, True)


def test_the_playgrounds_own_files_have_no_sign() -> None:
    assert signs_in_file(PATH, broker_text(1)) == ()

"""ZooKeeper and KRaft of a real cluster, and clients' data, compared under continuous writes before anybody may finalise."""

from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from domain.drift.normalise import scram_parts
from playground.clients import admin_client
from playground.rig import FORWARD_SECONDS, PLANNED_RESTARTS, Rig
from playground.seed import TOPICS
from tests.cluster.traces import traces_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

CONFIG, USER = "/config/topics/orders", "/config/users/bob"
EDITED = {"version": 1, "config": {"min.insync.replicas": "1", "compression.type": "zstd"}}


def report_of(rig: Rig, migration_id: str, check: str = "metadata") -> dict[str, Any]:
    """The newest of this check."""
    reports = rig.answer("GET", f"/migrations/{migration_id}/reports")["items"]
    newest = next(report for report in reports if report["check"] == check)
    print(f"--- {newest['verdict']} by {newest['engine']} in {newest['seconds']}: {newest['first']} {newest['not_read']}")
    return dict(newest)


@pytest.mark.chaos
def test_a_znode_edited_behind_kafkas_back_closes_the_gate_until_it_is_repaired(rig: Rig) -> None:
    name = rig.register()
    migration_id = rig.migrate(recheck_interval="PT5S")
    gate = rig.await_gate(migration_id)
    report = report_of(rig, migration_id)
    assert gate["evidence"]["report"]["content_hash"] == report["content_hash"]
    assert (report["verdict"], report["not_read"]) == ("clean", [])
    counts = report["counts"]
    assert counts["topic"]["equal"] >= len(TOPICS)
    assert counts["partition"]["equal"] >= sum(topic.partitions for topic in TOPICS)
    assert all(counts[kind]["equal"] for kind in ("topic-config", "broker-config", "quota", "scram", "acl"))
    baseline, messages = (report_of(rig, migration_id, check) for check in ("baseline", "messages"))
    assert (baseline["verdict"], messages["verdict"], messages["not_read"]) == ("clean", "clean", [])
    assert baseline["counts"]["batch"]["left"] > 0
    assert messages["counts"]["batch"]["equal"] > 0
    assert messages["counts"]["group-offset"]["equal"] > 0
    assert gate["evidence"]["messages"]["content_hash"] == messages["content_hash"]
    kept, copy = (report_of(rig, migration_id, check) for check in ("before-copy", "copy"))
    assert (kept["verdict"], copy["verdict"], copy["not_read"]) == ("clean", "clean", [])
    for kind in ("topic", "partition", "topic-config", "broker-config", "quota", "scram", "acl", "producer-ids"):
        assert 0 < copy["counts"][kind]["equal"] == kept["counts"][kind]["left"], kind
    assert gate["evidence"]["copy"]["content_hash"] == copy["content_hash"]

    before = rig.by_hand.znode(CONFIG)
    assert before is not None
    rig.by_hand.put_znode(CONFIG, EDITED)
    rig.answer("POST", f"/clusters/{name}/checks", {})
    waiting = rig.await_wait(migration_id, "drift-found")
    assert waiting["objects"] == ["topic-config orders/min.insync.replicas"]
    assert rig.approve(migration_id, gate["evidence_hash"]).status_code == 409
    assert "drift" in {loss["name"] for loss in rig.preview(migration_id)["losses"]}

    rig.by_hand.put_znode(CONFIG, before)
    again = rig.await_gate(migration_id)
    assert again["evidence_hash"] != gate["evidence_hash"], "what was approved before the drift must not count after it"
    assert rig.approve(migration_id, again["evidence_hash"]).is_success
    assert rig.await_end(migration_id)["state"] == "succeeded"
    assert rig.restarts(migration_id) == PLANNED_RESTARTS


@pytest.mark.chaos
def test_what_the_copy_lacks_stops_the_migration_where_it_can_go_back_and_no_secret_is_told(rig: Rig) -> None:
    """Two znodes go between the last look at ZooKeeper and the copy, as if the copy had lost them: one is full of secrets."""
    before, secrets = rig.files(), with_secrets(rig)
    rig.register()
    migration_id = rig.migrate()
    rig.await_event(migration_id, is_report_of("before-copy"), "what ZooKeeper has to be kept", FORWARD_SECONDS)
    with rig.by_hand.zookeeper() as client:
        for path in (CONFIG, USER):
            client.delete(path, recursive=True)
    waiting = rig.await_wait(migration_id, "copy-differs")
    assert {name.split("/")[0] for name in waiting["objects"]} >= {"topic-config orders", "scram bob"}
    report = report_of(rig, migration_id, "copy")
    assert (report["verdict"], {finding["finding"] for finding in report["first"]}) == ("drift", {"missing_right"})
    assert {finding["left_at"] for finding in report["first"]} >= {CONFIG, USER}
    hybrid = rig.restarts(migration_id)
    assert all(hybrid[rig.cluster.spec.node_name(broker.id)] == 1 for broker in rig.cluster.spec.brokers)

    rig.answer("POST", f"/clusters/{rig.cluster.spec.name}/checks", {})
    rig.await_event(migration_id, is_report_of("metadata"), "a comparison of the dual write")
    assert report_of(rig, migration_id)["verdict"] == "clean", "no later comparison shows it"
    assert rig.migration(migration_id)["waiting"]["reason"] == "copy-differs"
    rig.rollback(migration_id)
    assert rig.await_end(migration_id)["state"] == "reverted"
    assert {name: seen for name, seen in rig.files().items() if name in before} == before

    places = [rig.services.directory, rig.temporal.directory]
    told = {"the report": report["id"].encode(), "a row": b"min.insync.replicas", "a redaction": b"(redacted)"}
    assert {name for name, _ in traces_of(told, places)} == told.keys(), "else nothing was looked for"
    assert traces_of(secrets, places) == set()


def is_report_of(check: str) -> Callable[[dict[str, Any]], bool]:
    return lambda event: event["kind"] == "report-published" and event["data"]["check"] == check


def with_secrets(rig: Rig) -> dict[str, bytes]:
    """Of a cluster, by name: a plug-in's, and what ZooKeeper has of a user's, as text and as bytes."""
    plug_in = "open-sesame-of-the-playground"
    entry = ConfigEntry("plugin.api.secret", plug_in, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    admin = admin_client(rig.cluster.bootstrap_servers)  # kept: without it nobody waits for the answers
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(60)
    znode = rig.by_hand.znode(USER)
    assert znode is not None
    parts = scram_parts(znode["config"]["SCRAM-SHA-512"])
    found = {"plug-in": plug_in.encode(), "password": b"bob-of-the-playground"}
    for name in ("salt", "stored_key", "server_key"):
        found |= {name: parts[name], f"{name} as text": b64encode(parts[name])}
    return found
